"""Other processes in the same folder: one that holds a lock, one that writes until it is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_HOLD = """
import sys
from pathlib import Path
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.adapters.system_clock import SystemClock
folder, name, who = sys.argv[1:]
LocalState(Path(folder), SystemClock(), who=who).lock(name, "apply")
print("held", flush=True)
sys.stdin.read()
"""

_WRITE = """
import sys
from dataclasses import replace
from pathlib import Path
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.domain.state import Record, State
backend = LocalState(Path(sys.argv[1]), SystemClock(), who="a writer")
state, version = State(deployment="gemma", lineage="a" * 32), ""
while True:
    records = tuple(Record(index=n) for n in range(state.serial % 200))
    state = replace(state, serial=state.serial + 1, records=records)
    version = backend.write("gemma", state, over=version)
    print(state.serial, flush=True)
"""

_RECORD = """
import sys
from pathlib import Path
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone
backend = LocalState(Path(sys.argv[1]), SystemClock(), who="a writer")
print("ready", flush=True)
sys.stdin.read()
for n in range(int(sys.argv[3])):
    backend.record(HistoryEntry(at=float(n), zone=Zone("us-east5-a"), provisioning=Provisioning.SPOT, type="v6e-1", chips=1,
                         outcome=Ending.REFUSED, waited=0.0, kind=f"writer {sys.argv[2]}", text="x" * 5000))
"""


@contextmanager
def holding(folder: Path, name: str, *, who: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of `name` until the block ends."""
    command = [sys.executable, "-c", _HOLD, str(folder), name, who]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def kill_a_writer(folder: Path, *, after: int) -> int:
    """Write states of `gemma` one after the other, and kill the writer once `after` are done; how many it told of."""
    with subprocess.Popen([sys.executable, "-c", _WRITE, str(folder)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= after:
                process.kill()
                break
        answer = [int(line) for line in process.stdout.read().splitlines() if line]
    return max([after, *answer])


def record_much(folder: Path, *, writers: int, lines: int) -> None:
    """Processes that each record `lines` ends, all at the same time; done when they are."""
    pipe = subprocess.PIPE
    commands = [[sys.executable, "-c", _RECORD, str(folder), str(n), str(lines)] for n in range(writers)]
    with ExitStack() as stack:
        begun = [stack.enter_context(subprocess.Popen(c, stdin=pipe, stdout=pipe)) for c in commands]
        for process in begun:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        for process in begun:
            assert process.stdin is not None
            process.stdin.close()
        assert [process.wait() for process in begun] == [0] * writers


_APPEND = """
import sys
from itertools import count
from pathlib import Path
from tpudeploy.adapters.state.disk import Folder
path, writer, keep = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in count():
    Folder(path.parent).append(path.name, f"{writer} {number:09}\\n".encode(), keep=keep)
    if number % 100 == 0:
        print(number, flush=True)
"""


def append_until_killed(path: Path, *, writers: int, keep: int, size: int) -> None:
    """Let processes append to one file that keeps its last bytes, and kill them once each has written `size` bytes."""
    commands = [[sys.executable, "-c", _APPEND, str(path), str(n), str(keep)] for n in range(writers)]
    with ExitStack() as stack:
        begun = [stack.enter_context(subprocess.Popen(c, stdout=subprocess.PIPE, text=True)) for c in commands]
        for process in begun:
            assert process.stdout is not None
            next(line for line in process.stdout if int(line) * len("0 000000000\n") > size)
        for process in begun:
            process.kill()


_RACE = """
import sys
from pathlib import Path
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.domain.errors import StateLocked
backend = LocalState(Path(sys.argv[1]), SystemClock(), who="a runner")
print("ready", flush=True)
sys.stdin.readline()
try:
    backend.lock(sys.argv[2], "apply")
except StateLocked as locked:
    print(locked.exit_code, flush=True)
else:
    print("won", flush=True)
sys.stdin.read()
"""


def race(folder: Path, name: str, *, runners: int) -> list[str]:
    """What each of so many processes came to that ask for one lock at once: `won`, or its exit code."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", _RACE, str(folder), name]
    with ExitStack() as stack:
        begun = [stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe)) for _ in range(runners)]
        for process in begun:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        for process in begun:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        return [process.stdout.readline().decode().strip() for process in begun if process.stdout is not None]
