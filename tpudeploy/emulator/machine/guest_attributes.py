"""The guest attributes of one machine, and Google's limit on how often they are read and written.

Google's page on guest attributes allows about ten queries a minute for a VM and three in a second, and says that above
it attributes that are being written may be removed. A reader from outside counts like one on the machine. Which ones go
is not documented, and no error is: here a write above the limit is acknowledged, and its attribute is gone, with the
value that it had before. UNVERIFIED on TPU VMs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from tpudeploy.emulator.clock import EmulatorClock

QUERIES_A_MINUTE, QUERIES_A_SECOND = 10, 3
_MINUTE, _SECOND = 60.0, 1.0


class GuestAttributes:
    """Every method may be called from any thread. Names are NAMESPACE/KEY."""

    def __init__(self, clock: EmulatorClock) -> None:
        self._clock = clock
        self._values: dict[str, str] = {}
        self._queries: deque[float] = deque()
        self._removed: list[str] = []
        self._lock = threading.Lock()

    @property
    def values(self) -> Mapping[str, str]:
        """Return all attributes without counting a query, for tests."""
        with self._lock:
            return MappingProxyType(dict(self._values))

    @property
    def removed(self) -> tuple[str, ...]:
        """Return the name of each attribute that a write above the limit removed, in order."""
        with self._lock:
            return tuple(self._removed)

    def read(self) -> Mapping[str, str]:
        """Return all attributes, as one query however many there are."""
        with self._lock:
            self._count()
            return MappingProxyType(dict(self._values))

    def write(self, name: str, value: str) -> None:
        with self._lock:
            if self._count():
                self._values[name] = value
            else:
                self._values.pop(name, None)
                self._removed.append(name)

    def remove(self, name: str) -> None:
        with self._lock:
            self._count()
            self._values.pop(name, None)

    def _count(self) -> bool:
        """Count one query, and return whether the limit allows it."""
        now = self._clock.now()
        while self._queries and now - self._queries[0] >= _MINUTE:
            self._queries.popleft()
        self._queries.append(now)
        in_this_second = sum(now - at < _SECOND for at in self._queries)
        return len(self._queries) <= QUERIES_A_MINUTE and in_this_second <= QUERIES_A_SECOND
