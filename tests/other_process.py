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


@contextmanager
def holding(folder: Path, name: str, *, who: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of `name` until the block ends."""
    command = [sys.executable, "-c", _HOLD, str(folder), name, who]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
