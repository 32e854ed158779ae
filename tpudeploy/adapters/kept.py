"""What was read from Google, kept in a file for a while: small JSON files beside the states."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import StateError

T = TypeVar("T")


class Kept:
    """One folder of readings. `source` says where they come from: a reading from elsewhere is no reading."""

    def __init__(self, folder: Path, *, source: str) -> None:
        self._folder = folder
        self._source = source

    def get(self, name: str, load: Callable[[Mapping[str, Any]], T]) -> T | None:
        """The reading of this name, or None: there is none, or none that can be understood."""
        try:
            tree = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            return load(tree["reading"]) if tree["source"] == self._source else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # it is read anew, and written over

    def put(self, name: str, reading: Mapping[str, Any]) -> None:
        """Best effort: a reading that cannot be kept only costs the next one its time."""
        text = json.dumps({"source": self._source, "reading": reading}, ensure_ascii=False)
        with suppress(OSError, StateError):
            disk.replace(self._folder / f"{name}.json", text)
            disk.hide_from_git(self._folder)


def is_fresh(read_at: float, now: float, *, most: float) -> bool:
    """Whether a reading is younger than `most` seconds; one from the future is not trusted."""
    return 0 <= now - read_at < most
