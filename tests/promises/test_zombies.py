"""A run that is stopped (SIGSTOP) for longer than its lock lasts, and goes on (SIGCONT) after another one took over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from command_line import PROFILE
from real_time import DEADLINE
from shared_clock import COMMAND, SharedClock

from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.cli.main import main
from tpudeploy.emulator import Emulator, running
from tpudeploy.emulator.http_server import HttpRequest, Reply

START = 1_790_000_000.0
APPLY = ("apply", "-auto-approve", "--backend", "gs://states/team", "gemma.yaml")
TESTS = Path(__file__).parent.parent


@dataclass
class Freezer:
    """Stops the process `pid` when its request number `at`, counted from 0, is carried out and not yet answered."""

    at: int | None
    pid: int = 0
    paths: list[str] = field(default_factory=list)
    is_stopped: Event = field(default_factory=Event)

    def __call__(self, method: str, path: str) -> None:
        self.paths.append(f"{method} {path}")
        if len(self.paths) - 1 == self.at:
            os.kill(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)
            self.is_stopped.set()


@contextmanager
def cloud(folder: Path, freezer: Freezer, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Emulator, SharedClock]]:
    clock = SharedClock(folder / "time", start=START)
    with running(clock=clock, scenario={"nodes": "simulated", "boot": {"boot_seconds": 60}}) as emulator:
        answer = emulator._server.answer

        def answer_and_freeze(request: HttpRequest) -> Reply:
            reply = answer(request)
            freezer(request.method, request.target)
            return reply

        monkeypatch.setattr(emulator._server, "answer", answer_and_freeze)
        for name, value in {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}.items():
            monkeypatch.setenv(name, value)
        yield emulator, clock


@contextmanager
def process(folder: Path, freezer: Freezer) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    words = [sys.executable, "-c", COMMAND, str(folder / "time"), *APPLY]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        freezer.pid = run.pid
        try:
            yield run
        finally:
            run.kill()


def creates(paths: list[str]) -> list[int]:
    """Which of these requests ask for a slice."""
    return [number for number, path in enumerate(paths) if path.startswith("POST") and "queuedResourceId" in path]


@pytest.mark.exhaustive
def test_a_run_that_wakes_up_after_its_lock_was_taken_over_writes_nothing_and_asks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *, whole: bool
) -> None:
    usual = Freezer(at=None)
    with cloud(_folder(tmp_path, "usual"), usual, monkeypatch), process(tmp_path / "usual", usual) as run:
        output = run.communicate(timeout=DEADLINE)[0]
        assert run.returncode == 0, output
    (create,) = creates(usual.paths)
    others = Random(0).sample(range(create + 1, len(usual.paths)), 1)
    # The proof of the lock and the intent, the request itself, and any later one.
    for at in range(0, len(usual.paths), 8) if whole else (create - 2, create - 1, create, *others):
        freezer = Freezer(at=at)
        folder = _folder(tmp_path, f"stopped-{at}")
        with cloud(folder, freezer, monkeypatch) as (emulator, clock), process(folder, freezer) as zombie:
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
