"""What a server showed, each under the id by which it may be carried out: that very thing, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

_MOST = 50  # that are kept; then the oldest goes


class HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)


class Shown(Generic[T]):
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, T] = {}
        self._count = 0

    def keep(self, make: Callable[[int], T]) -> T:
        """What `make` makes of its number, counted from 1."""
        with self._lock:
            self._count += 1
            kept = make(self._count)
            self._kept[kept.id] = kept
            if len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]
            return kept

    def get(self, id_: str) -> T | None:
        with self._lock:
            return self._kept.get(id_)
