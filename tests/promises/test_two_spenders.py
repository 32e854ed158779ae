"""Two processes under the budget of one team: together they never request more than it holds, wherever one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PROFILE
from real_time import DEADLINE

from tpudeploy.emulator import Emulator, running

pytestmark = pytest.mark.waits

TIMINGS = {"queued": 1.5, "waiting": 1.5, "provisioning": 3.0, "boot": 1.0, "deleting": 0.3}
END = "lifecycle: {end: 10h}\n"  # at most $15.44 each
ROOM_FOR_ONE, ROOM_FOR_TWO = "month: 15.5\n", "month: 31\n"
RUN = "from tpudeploy.cli import main; main.run()"
# It dies once its intent is saved, and before the request is sent.
KILLED_BEFORE_THE_CREATE = """
import os, signal
from tpudeploy.adapters.google.backends import Backends
from tpudeploy.cli import main
Backends.request = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main.run()
"""


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with running(scenario={"nodes": "simulated", "timings": TIMINGS}) as emulator:
        yield emulator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("gemma", "second"):
        text = PROFILE.replace("name: gemma", f"name: {name}") + END
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / ".tpudeploy").mkdir()
    (tmp_path / ".tpudeploy" / "budgets.yaml").write_text(ROOM_FOR_ONE, encoding="utf-8")
    return tmp_path


def start(emulator: Emulator, folder: Path, *words: str, program: str = RUN) -> subprocess.Popen[str]:
    environment = {**os.environ, **emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}
    command = [sys.executable, "-c", program, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def result(run: subprocess.Popen[str]) -> tuple[int, str]:
    output = run.communicate(timeout=DEADLINE)[0]
    assert "Traceback" not in output, output
    return run.returncode, output


def creates(emulator: Emulator) -> int:
    return sum(r.method == "POST" and "queuedResourceId" in r.path for r in emulator.requests)


def test_of_two_processes_one_gets_the_last_dollar(emulator: Emulator, folder: Path) -> None:
    runs = [start(emulator, folder, "apply", "-auto-approve", f"{name}.yaml") for name in ("gemma", "second")]
    results = [result(run) for run in runs]
    assert sorted(code for code, _ in results) == [0, 13], results
    assert creates(emulator) == 1


def test_one_that_is_killed_before_its_request_still_counts_and_blocks_nobody(emulator: Emulator, folder: Path) -> None:
    killed = start(emulator, folder, "apply", "-auto-approve", "gemma.yaml", program=KILLED_BEFORE_THE_CREATE)
    assert result(killed)[0] == -signal.SIGKILL
    assert creates(emulator) == 0
    code, output = result(start(emulator, folder, "apply", "-auto-approve", "second.yaml"))
    assert (code, "could exceed a budget" in output) == (13, True), output
    (folder / ".tpudeploy" / "budgets.yaml").write_text(ROOM_FOR_TWO, encoding="utf-8")
    assert result(start(emulator, folder, "apply", "-auto-approve", "second.yaml"))[0] == 0
    assert creates(emulator) == 1
