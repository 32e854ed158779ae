"""The rows of each deployment's load, in memory and in a file beside the states that never grows beyond 1 MiB.

A killed dashboard leaves whole lines, or one torn line, which is not read. A file that cannot be written changes
nothing on the page: `error` says why.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from tpudeploy.adapters.state.disk import Folder
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.features.dashboard.load_history import DAY, SPANS, LoadRow, series

_KEEP_BYTES = 512 << 10  # the file is replaced by its last lines of so many bytes once it has twice as many
_MOST_ROWS = 5760  # a day of readings every 15 seconds


class LoadFile:
    """The rows of one deployment, and the last figures of each of its servers, by URL."""

    def __init__(self, folder: Folder, deployment: str) -> None:
        self._folder = folder
        self._name = f"{deployment}.jsonl"
        self._lock = threading.Lock()
        self._rows = deque(self._read(), _MOST_ROWS)
        self.error = ""
        self.read_at: float | None = None
        self.figures: Mapping[str, EngineFigures] = {}

    def _read(self) -> list[LoadRow]:
        with suppress(OSError):
            lines = self._folder.last_lines(self._name, 2 * _KEEP_BYTES).splitlines()
            return sorted((row for line in lines if (row := LoadRow.from_line(line))), key=lambda row: row.at)
        return []

    def append(self, row: LoadRow) -> None:
        with self._lock:
            self._rows.append(row)
            while self._rows[0].at < row.at - DAY:
                self._rows.popleft()
        try:
            self._folder.append(self._name, f"{row.to_line()}\n".encode(), keep=_KEEP_BYTES)
            with self._folder.writing():
                self._folder.hide_from_git()
            self.error = ""
        except (OSError, StateError) as cause:
            self.error = f"The load of before is not kept: {cause}"

    def series(self, now: float) -> dict[str, object]:
        """Return the columns of each chart's time, by its name."""
        with self._lock:
            rows = tuple(self._rows)
        return {name: series(rows, now, *times) for name, times in SPANS.items()}
