"""Records, one JSON document each, named by its id: what features keep of their own, on disk or in a bucket.

Each is written by one run at a time, so nothing is locked.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors

if TYPE_CHECKING:
    from tpudeploy.adapters.google.objects import BucketObjects

_JSON = ".json"


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


class LocalRecords:
    """See `ports.RecordStore`. The records of one folder."""

    def __init__(self, files: disk.Folder) -> None:
        self._files = files

    def ids(self) -> list[str]:
        return ids(self._files)

    def read(self, id: str) -> str:  # noqa: A002 - the record's word
        return text(self._files, id)

    def keep(self, id: str, text: str, *, prove: Callable[[], None] = lambda: None) -> None:  # noqa: A002 - the record's word
        prove()
        keep(self._files, id, text)

    def place(self, id: str) -> str:  # noqa: A002 - the record's word
        return str(self._files.path / f"{id}{_JSON}")


class BucketRecords:
    """See `ports.RecordStore`. The records under one prefix of a bucket.

    Those of `older` are read too: earlier versions kept them on this machine.
    """

    def __init__(self, objects: BucketObjects, prefix: str, older: LocalRecords) -> None:
        self._objects = objects
        self._prefix = prefix
        self._older = older

    def ids(self) -> list[str]:
        keys = [entry.key.removeprefix(self._prefix) for entry in self._objects.list_under(self._prefix)]
        own = {key.removesuffix(_JSON) for key in keys if key.endswith(_JSON) and "/" not in key}
        return sorted({*own, *self._older.ids()})

    def read(self, id: str) -> str:  # noqa: A002 - the record's word
        stored = self._objects.get(self._key(id))
        if stored is None:
            return self._older.read(id)
        try:
            return stored.content.decode("utf-8")
        except ValueError as cause:
            raise errors.RunUnreadable(f"{self.place(id)} cannot be read: {cause}.") from cause

    def keep(self, id: str, text: str, *, prove: Callable[[], None] = lambda: None) -> None:  # noqa: A002 - the record's word
        from tpudeploy.adapters.google.objects import Moved

        key = self._key(id)
        try:
            generation = self._objects.generation(key)
            prove()
            self._objects.write(key, text.encode(), over=generation)
        except Moved as cause:
            hint = "Another run writes it too. Stop one of them, and run the command again."
            raise errors.StateError(f"{self.place(id)} was changed meanwhile.", hint=hint) from cause

    def place(self, id: str) -> str:  # noqa: A002 - the record's word
        return self._objects.name(self._key(id))

    def _key(self, id: str) -> str:  # noqa: A002 - the record's word
        return f"{self._prefix}{id}{_JSON}"
