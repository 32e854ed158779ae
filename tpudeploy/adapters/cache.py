"""An on-disk cache of facts read from Google: small JSON files beside the states."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import StateError

T = TypeVar("T")


class Cache:
    """Caches values in one folder. `source` is where they come from; values of another source are ignored."""

    def __init__(self, folder: Path, *, source: str) -> None:
        self._folder = folder
        self._source = source

    def get(self, name: str, load: Callable[[Mapping[str, Any]], T]) -> T | None:
        """Return the cached value of this name, or None where it is absent or cannot be parsed."""
        try:
            tree = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            return load(tree["reading"]) if tree["source"] == self._source else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # the value is read again from its source, and the file is overwritten

    def store(self, name: str, value: Mapping[str, Any]) -> None:
        """Store a value, best effort: if it cannot be stored, the next run reads it again from its source."""
        text = json.dumps({"source": self._source, "reading": value}, ensure_ascii=False)
        with suppress(OSError, StateError):
            disk.replace(self._folder / f"{name}.json", text)
            disk.hide_from_git(self._folder)


def is_fresh(read_at: float, now: float, *, most: float) -> bool:
    """Return whether a value is younger than `most` seconds. A time in the future is not trusted."""
    return 0 <= now - read_at < most
