"""Two processes under the budget of one team: together they never request more than it holds.

Wherever one of them is killed, wherever the states are, and whatever time the clock of one shows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PROFILE
from real_time import DEADLINE, until

from tpudeploy.emulator import Emulator, running
from tpudeploy.emulator.storage_objects import Conditions, StoredObject

pytestmark = pytest.mark.waits

TIMINGS = {"queued": 1.5, "waiting": 1.5, "provisioning": 3.0, "boot": 1.0, "deleting": 0.3}
END = "lifecycle: {end: 10h}\n"  # at most $15.44 each
ROOM_FOR_ONE, ROOM_FOR_TWO = "month: 15.5\n", "month: 31\n"
IN_A_BUCKET = ("--backend", "gs://states/team")
EITHER = pytest.mark.parametrize("where", [(), IN_A_BUCKET], ids=["in a folder", "in a bucket"])
RUN = "from tpudeploy.cli import main; main.run()"
# A laptop whose clock is wrong by this number of seconds.
WRONG_CLOCK = """
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.cli import main
now = SystemClock.now
SystemClock.now = lambda self: now(self) + {seconds}
main.run()
"""
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
    return tmp_path


def put_budget(emulator: Emulator, folder: Path, text: str) -> None:
    """Put the budget of the team where either place of the states has it."""
    (folder / ".tpudeploy").mkdir(exist_ok=True)
    (folder / ".tpudeploy" / "budgets.yaml").write_text(text, encoding="utf-8")
    upload = StoredObject(name="team/budgets.yaml", content=text.encode())
    emulator._cloud.objects.insert("states", upload, Conditions())


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
    return len(create_paths(emulator, ""))


def create_paths(emulator: Emulator, name: str) -> list[str]:
    creates = [r.path for r in emulator.requests if r.method == "POST" and "queuedResourceId" in r.path]
    return [path for path in creates if f"queuedResourceId={name}" in path]


@EITHER
def test_of_two_processes_one_gets_the_last_dollar(emulator: Emulator, folder: Path, where: tuple[str, ...]) -> None:
    put_budget(emulator, folder, ROOM_FOR_ONE)
    runs = [start(emulator, folder, "apply", "-auto-approve", *where, f"{name}.yaml") for name in ("gemma", "second")]
    results = [result(run) for run in runs]
    assert sorted(code for code, _ in results) == [0, 13], results
    assert creates(emulator) == 1


@EITHER
@pytest.mark.parametrize("seconds", [-600.0, 600.0], ids=["behind", "ahead"])
def test_a_clock_that_is_wrong_by_minutes_spends_no_dollar_twice(
    emulator: Emulator, folder: Path, where: tuple[str, ...], seconds: float
) -> None:
    put_budget(emulator, folder, ROOM_FOR_ONE)
    program = WRONG_CLOCK.format(seconds=seconds)
    apply = ("apply", "-auto-approve", *where)
    runs = [
        start(emulator, folder, *apply, "gemma.yaml"),
        start(emulator, folder, *apply, "second.yaml", program=program),
    ]
    results = [result(run) for run in runs]
    assert sorted(code for code, _ in results) == [0, 13], results
    assert creates(emulator) == 1


@EITHER
def test_of_two_that_watch_one_keeps_its_slice_and_neither_requests_beyond(
    emulator: Emulator, folder: Path, where: tuple[str, ...]
) -> None:
    put_budget(emulator, folder, ROOM_FOR_ONE)
    names = ("gemma", "second")
    watch = ("apply", "-auto-approve", "-watch", *where)
    runs = {name: start(emulator, folder, *watch, f"{name}.yaml") for name in names}
    until(lambda: sum(run.poll() is None for run in runs.values()) == 1)
    (loser,) = (name for name, run in runs.items() if run.poll() is not None)
    (winner,) = set(names) - {loser}
    assert result(runs[loser])[0] == 13
    until(lambda: len(emulator.billed()) == 1)
    (name,) = emulator.billed()
    assert name.startswith(winner)
    emulator.preempt(name)
    until(lambda: creates(emulator) == 2)  # what it lost costs no more, and makes room for its successor alone
    code, output = result(start(emulator, folder, "apply", "-auto-approve", *where, f"{loser}.yaml"))
    assert (code, "could exceed a budget" in output) == (13, True), output
    runs[winner].send_signal(signal.SIGINT)
    assert result(runs[winner])[0] == 130
    assert len(create_paths(emulator, loser)) == 0


@EITHER
def test_one_that_is_killed_before_its_request_still_counts_and_blocks_nobody(
    emulator: Emulator, folder: Path, where: tuple[str, ...]
) -> None:
    put_budget(emulator, folder, ROOM_FOR_ONE)
    apply = ("apply", "-auto-approve", *where)
    first = start(emulator, folder, *apply, "gemma.yaml", program=KILLED_BEFORE_THE_CREATE)
    assert result(first)[0] == -signal.SIGKILL
    assert creates(emulator) == 0
    code, output = result(start(emulator, folder, *apply, "second.yaml"))
    assert (code, "could exceed a budget" in output) == (13, True), output
    put_budget(emulator, folder, ROOM_FOR_TWO)
    assert result(start(emulator, folder, *apply, "second.yaml"))[0] == 0
    assert creates(emulator) == 1
