"""Other processes at the same desk: one that holds a lock, one that writes until it is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
        told = [int(line) for line in process.stdout.read().splitlines() if line]
    return max([after, *told])
