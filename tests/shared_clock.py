"""One virtual time for several processes: a file that each of them maps. Time passes in `sleep`, at once, for all."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.ports import Workers

_FORMAT = "d"
# A command as a process of its own: the file of the time, then its words.
COMMAND = """\
import sys
from pathlib import Path
from shared_clock import SharedClock
from tpudeploy.cli.main import main
sys.exit(main(sys.argv[2:], clock=SharedClock(Path(sys.argv[1]))))
"""


class SharedClock:
    """`path` is the file; `start` makes it, in seconds since the epoch. See `ports.Clock`."""

    def __init__(self, path: Path, *, start: float | None = None) -> None:
        if start is not None:
            path.write_bytes(struct.pack(_FORMAT, start))
        with path.open("r+b") as file:
            self._time = mmap.mmap(file.fileno(), struct.calcsize(_FORMAT))

    def now(self) -> float:
        moment: float = struct.unpack(_FORMAT, self._time[:])[0]
        return moment

    def sleep(self, seconds: float) -> None:
        self._time[:] = struct.pack(_FORMAT, self.now() + max(0.0, seconds))

    def real_seconds(self, seconds: float) -> float:  # noqa: ARG002 - one signature for all clocks
        """Return 0: time passes at once."""
        return 0.0

    def stop(self) -> None:
        """Nothing to do: no sleep here lasts."""

    @contextmanager
    def workers(self) -> Iterator[Workers]:
        """One process at a time works here, and one deployment in each."""
        with SystemClock().workers() as workers:
            yield workers
