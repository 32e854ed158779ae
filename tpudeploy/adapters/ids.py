"""Ids that files are kept by: a new one, and which one a person means."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tpudeploy.domain.errors import UsageError


def new(now: float) -> str:
    """Of this moment, in seconds since the epoch; sorted as time goes, and nobody else's."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def found(paths: Sequence[Path], id: str, what: str, *, hint: str) -> Path:  # noqa: A002 - the record's word
    """The one of this id, or the only one that begins so. Raise `errors.UsageError`; `hint` is for where none is."""
    meant = [path for path in paths if path.stem.startswith(id)]
    exact = [path for path in meant if path.stem == id] or meant
    if len(exact) == 1:
        return exact[0]
    if not exact:
        raise UsageError(f"There is no {what} `{id}`.", hint=hint)
    names = ", ".join(path.stem for path in exact)
    raise UsageError(f"`{id}` begins several {what}s: {names}.", hint="Write more of it.")
