"""A run that is stopped (SIGSTOP) for longer than its lock lasts, and goes on (SIGCONT) after another one took over."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import PROFILE
from freezer import Freezer, cloud, process
from real_time import DEADLINE

from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.cli.main import main
from tpudeploy.emulator import Emulator

APPLY = ("apply", "-auto-approve", "--backend", "gs://states/team", "gemma.yaml")


def creates(paths: list[str]) -> list[int]:
    """Which of these requests ask for a slice."""
    return [number for number, path in enumerate(paths) if path.startswith("POST") and "queuedResourceId" in path]


@pytest.mark.exhaustive
def test_a_run_that_wakes_up_after_its_lock_was_taken_over_writes_nothing_and_asks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *, whole: bool
) -> None:
    usual = Freezer(at=None)
    with cloud(_folder(tmp_path, "usual"), usual, monkeypatch), process(tmp_path / "usual", usual, *APPLY) as run:
        output = run.communicate(timeout=DEADLINE)[0]
        assert run.returncode == 0, output
    (create,) = creates(usual.paths)
    others = Random(0).sample(range(create + 1, len(usual.paths)), 1)
    # The proof of the lock and the intent, the request itself, and any later one.
    for at in range(0, len(usual.paths), 8) if whole else (create - 2, create - 1, create, *others):
        freezer = Freezer(at=at)
        folder = _folder(tmp_path, f"stopped-{at}")
        with cloud(folder, freezer, monkeypatch) as (emulator, clock), process(folder, freezer, *APPLY) as zombie:
            assert freezer.is_stopped.wait(DEADLINE), usual.paths[at]
            clock.sleep(LEASE_SECONDS + 1)  # the bucket says what time it is in whole seconds
            code = main([*APPLY, "--chdir", str(folder)], clock=clock)
            capfd.readouterr()
            assert code == 0, (at, usual.paths[at])
            before, state = len(creates(freezer.paths)), _state(emulator)
            os.kill(zombie.pid, signal.SIGCONT)
            output = zombie.communicate(timeout=DEADLINE)[0]
            assert "Traceback" not in output
            assert zombie.returncode in {0, 1, 11}, output
            assert len(creates(freezer.paths)) == before, (at, usual.paths[at], output)
            assert [s for zone in emulator.live().values() for s in zone.values()] == ["ACTIVE"], output
            assert _attempts(_state(emulator)) == _attempts(state)
            assert _lies(emulator, "team/state/gemma.lock") is None


@pytest.mark.exhaustive
def test_a_run_that_wakes_up_after_its_deployment_was_completed_and_deleted_asks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *, whole: bool
) -> None:
    usual = Freezer(at=None)
    with cloud(_folder(tmp_path, "usual"), usual, monkeypatch), process(tmp_path / "usual", usual, *APPLY) as run:
        output = run.communicate(timeout=DEADLINE)[0]
        assert run.returncode == 0, output
    (create,) = creates(usual.paths)
    for at in range(create, len(usual.paths), 8) if whole else (create + 4,):
        freezer = Freezer(at=at)
        folder = _folder(tmp_path, f"stopped-{at}")
        with cloud(folder, freezer, monkeypatch) as (emulator, clock), process(folder, freezer, *APPLY) as zombie:
            assert freezer.is_stopped.wait(DEADLINE), usual.paths[at]
            clock.sleep(LEASE_SECONDS + 1)
            for command in (APPLY, ("destroy", *APPLY[1:])):
                assert main([*command, "--chdir", str(folder)], clock=clock) == 0, (at, command)
            capfd.readouterr()
            before = len(creates(freezer.paths))
            os.kill(zombie.pid, signal.SIGCONT)
            output = zombie.communicate(timeout=DEADLINE)[0]
            assert "Traceback" not in output
            assert len(creates(freezer.paths)) == before, (at, usual.paths[at], output)
            assert emulator.billed() == (), output


def _folder(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    return folder


def _lies(emulator: Emulator, key: str) -> bytes | None:
    objects = list(emulator._cloud.objects.under("states", key))
    return objects[0].content if objects else None


def _state(emulator: Emulator) -> dict[str, Any]:
    content = _lies(emulator, "team/state/gemma.json")
    assert content is not None
    tree: dict[str, Any] = json.loads(content)
    return tree


def _attempts(state: dict[str, Any]) -> list[str]:
    return [attempt["name"] for record in state["records"] for attempt in record["attempts"]]
