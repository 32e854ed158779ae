"""Ids of files: creation of a new one, and lookup by an id or its beginning."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tpudeploy.domain.errors import UsageError


def new(now: float) -> str:
    """Return a unique id for the time `now` (seconds since the epoch). Ids sort by time."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def find_path(paths: Sequence[Path], id: str, what: str, *, hint: str) -> Path:  # noqa: A002 - the record's word
    """Return the path with this id, or the only one that begins with it.

    Raise `errors.UsageError` where none or several match; `hint` is the remedy where none does.
    """
    matches = [path for path in paths if path.stem.startswith(id)]
    exact = [path for path in matches if path.stem == id] or matches
    if len(exact) == 1:
        return exact[0]
    if not exact:
        raise UsageError(f"There is no {what} `{id}`.", hint=hint)
    names = ", ".join(path.stem for path in exact)
    raise UsageError(f"`{id}` matches several {what}s: {names}.", hint="Write more of the id.")
