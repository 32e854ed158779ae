"""Store what a server showed, so that exactly that can be carried out by its id."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

_MAX_ENTRIES = 50  # entries that are kept; older ones are dropped


class HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)


class EntryStore(Generic[T]):
    """A store of the latest entries by id. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, T] = {}
        self._count = 0

    def keep(self, make: Callable[[int], T]) -> T:
        """Store and return the entry that `make` creates from its number, counted from 1."""
        with self._lock:
            self._count += 1
            entry = make(self._count)
            self._entries[entry.id] = entry
            if len(self._entries) > _MAX_ENTRIES:
                del self._entries[next(iter(self._entries))]
            return entry

    def get(self, id_: str) -> T | None:
        with self._lock:
            return self._entries.get(id_)
