"""Real processes, real signals, seconds of real time: what a kill and a Ctrl-C leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from desk import PROFILE

from tpudeploy.emulator import Emulator, running

SOON = 60.0
IN_A_BUCKET = ("--backend", "gs://states/team")
# Each phase of a slice outlasts two polls, so that each is seen.
TIMINGS = {"queued": 1.5, "waiting": 1.5, "provisioning": 3.0, "boot": 1.0, "deleting": 0.3}


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with running(scenario={"nodes": "simulated", "timings": TIMINGS}) as emulator:
        yield emulator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    (tmp_path / "second.yaml").write_text(PROFILE.replace("name: gemma", "name: second"), encoding="utf-8")
    return tmp_path


def test_killed_outright_a_rerun_ends_with_one_slice_and_destroy_with_none(emulator: Emulator, folder: Path) -> None:
    with command(emulator, folder, "apply", "-auto-approve", "gemma.yaml") as run:
        heard(run, "Provisioning")
        run.kill()
        assert run.wait(SOON) == -signal.SIGKILL
    assert ended(emulator, folder, "apply", "-auto-approve", "gemma.yaml") == 0
    assert states(emulator) == ["ACTIVE"]
    assert ended(emulator, folder, "destroy", "-auto-approve", "gemma.yaml") == 0
    assert states(emulator) == []


def test_killed_outright_with_the_state_in_a_bucket_a_rerun_goes_on_once_the_lock_is_freed(
    emulator: Emulator, folder: Path
) -> None:
    apply = ("apply", "-auto-approve", *IN_A_BUCKET, "gemma.yaml")
    with command(emulator, folder, *apply) as run:
        heard(run, "Provisioning")
        run.kill()
        assert run.wait(SOON) == -signal.SIGKILL
    for lock in locks(emulator):  # there is one if it died in the middle of a step
        assert ended(emulator, folder, *apply) == 10
        assert ended(emulator, folder, "force-unlock", "-force", lock, *IN_A_BUCKET) == 0
    assert ended(emulator, folder, *apply) == 0
    assert states(emulator) == ["ACTIVE"]
    assert ended(emulator, folder, "destroy", "-auto-approve", *IN_A_BUCKET, "gemma.yaml") == 0
    assert states(emulator) == []


@pytest.mark.parametrize("where", [(), IN_A_BUCKET], ids=["in a folder", "in a bucket"])
@pytest.mark.parametrize("profiles", [("gemma.yaml",), ("gemma.yaml", "second.yaml")])
def test_ctrl_c_ends_every_deployment_saved_with_130_and_the_lock_free(
    emulator: Emulator, folder: Path, profiles: tuple[str, ...], where: tuple[str, ...]
) -> None:
    with command(emulator, folder, "apply", "-auto-approve", *where, *profiles) as run:
        heard(run, "In the queue")
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=SOON)[0]
    assert run.returncode == 130, told
    assert "Interrupted. What was begun is saved." in told
    assert "Traceback" not in told
    assert states(emulator) == ["WAITING_FOR_RESOURCES"] * len(profiles)
    assert locks(emulator) == []
    assert ended(emulator, folder, "destroy", "-auto-approve", *where, *profiles) == 0
    assert states(emulator) == []


@contextmanager
def command(emulator: Emulator, folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """One command as a process of its own; what it says, data and talk, in one stream."""
    environment = {**os.environ, **emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "tpudeploy", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def ended(emulator: Emulator, folder: Path, *words: str) -> int:
    with command(emulator, folder, *words) as run:
        told = run.communicate(timeout=SOON)[0]
    assert "Traceback" not in told, told
    return run.returncode


def heard(run: subprocess.Popen[str], word: str) -> None:
    """Wait until it says so."""
    assert run.stdout is not None
    told = []
    for line in run.stdout:
        told.append(line)
        if word in line:
            return
    raise AssertionError(f"it never said {word!r}: {told}")


def states(emulator: Emulator) -> list[str]:
    return [state for zone in emulator.live().values() for state in zone.values()]


def locks(emulator: Emulator) -> list[str]:
    """Ids of the locks in the bucket."""
    found = emulator._cloud.objects.under("states", "team/state/")
    return [json.loads(one.content)["id"] for one in found if one.name.endswith(".lock")]
