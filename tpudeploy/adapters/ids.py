"""Files that are kept by their id: which one a person means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tpudeploy.domain.errors import UsageError


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
