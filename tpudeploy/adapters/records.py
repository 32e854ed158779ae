"""Records on disk, one JSON file each, named by its id: what features keep of their own.

They belong to one user, so nothing is locked.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors


def new_id(now: float) -> str:
    """Return a unique id for the time `now` (seconds since the epoch). Ids sort by time."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def find_id(ids: Sequence[str], id: str, what: str, *, hint: str) -> str:  # noqa: A002 - the record's word
    """Return this id, or the only one that begins with it.

    Raise `errors.UsageError` where none or several match; `hint` is the remedy where none does.
    """
    matches = [each for each in ids if each.startswith(id)]
    exact = [each for each in matches if each == id] or matches
    if len(exact) == 1:
        return exact[0]
    if not exact:
        raise errors.UsageError(f"There is no {what} `{id}`.", hint=hint)
    raise errors.UsageError(f"`{id}` matches several {what}s: {', '.join(exact)}.", hint="Write more of the id.")


def keep(files: disk.Folder, id: str, text: str) -> None:  # noqa: A002 - the record's word
    files.replace(f"{id}.json", text)
    with files.writing():
        files.hide_from_git()


def ids(files: disk.Folder) -> list[str]:
    return sorted(name.removesuffix(".json") for name in files.files(".json"))


def text(files: disk.Folder, id: str) -> str:  # noqa: A002 - the record's word
    try:
        return files.read(f"{id}.json").decode("utf-8")
    except (OSError, ValueError) as cause:
        raise errors.RunUnreadable(f"{files.path / f'{id}.json'} cannot be read: {cause}.") from cause
