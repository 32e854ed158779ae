"""Tunings on disk: `.tpudeploy/runs/tune/ID.json`. Their runs are stored with all others."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters import records
from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors
from tpudeploy.features.tune.tuning import Tuning
from tpudeploy.serialization import sealed

FORMAT = "tpudeploy.tuning/1"


class LocalTunings:
    def __init__(self, files: disk.Folder) -> None:
        self._files = files

    def path(self, tuning: Tuning) -> Path:
        return self._files.path / f"{tuning.id}.json"

    def keep(self, tuning: Tuning) -> Tuning:
        """Write the tuning and return it. Raise `errors.StateError` where the file cannot be written."""
        records.keep(self._files, tuning.id, sealed.dumps(tuning, FORMAT))
        return tuning

    def all(self) -> tuple[Tuning, ...]:
        """Return every tuning. Raise `errors.RunUnreadable`."""
        return tuple(self._load(id_) for id_ in records.ids(self._files))

    def read(self, id_: str) -> Tuning | None:
        """Return the tuning with this id, or None. Raise `errors.RunUnreadable`."""
        return self._load(id_) if id_ in records.ids(self._files) else None

    def find(self, id_: str) -> Tuning:
        """Return the tuning whose id begins like this. Raise `errors.UsageError`, and `errors.RunUnreadable`."""
        hint = "`tpudeploy tune PROFILE` prints the id of its tuning."
        return self._load(records.find_id(records.ids(self._files), id_, "tuning", hint=hint))

    def _load(self, id_: str) -> Tuning:
        try:
            return sealed.loads(Tuning, records.text(self._files, id_), FORMAT)
        except ValueError as cause:
            path = self._files.path / f"{id_}.json"
            raise errors.RunUnreadable(f"{path} is not a readable tuning: {cause}.", hint="Delete it.") from cause
