"""Answers to questions on disk: `.tpudeploy/runs/accuracy/ID.json`."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters import records
from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors
from tpudeploy.features.accuracy import sheet
from tpudeploy.features.accuracy.sheet import Sheet

_MOST_BYTES = 256 * 1024 * 1024  # of questions and answers


class LocalSheets:
    def __init__(self, files: disk.Folder) -> None:
        self._files = files
        self.folder = files.path

    def keep(self, answers: Sheet) -> Path:
        """Write a sheet and return its path. Raise `errors.StateError` where it cannot be written."""
        records.keep(self._files, answers.id, sheet.dumps(answers))
        return self.folder / f"{answers.id}.json"

    def read(self, id: str) -> Sheet:  # noqa: A002 - the record's word
        """Return the sheet with this id. Raise `errors.UsageError` or `errors.RunUnreadable`."""
        return sheet.loads(records.text(self._files, id), source=str(self.folder / f"{id}.json"))

    def path(self, name: str, beside: Path) -> Path:
        """Return the path of a sheet, given as a file or as the id of a stored sheet."""
        file, stored = beside / name, self.folder / f"{name}.json"
        return stored if not file.exists() and stored.is_file() else file


def read_text(path: Path) -> str:
    """Return the text of a file of questions or answers. Raise `errors.UsageError`."""
    try:
        return read_file(path, _MOST_BYTES).decode("utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text"
        raise errors.UsageError(f"{path} cannot be read: {why}.") from cause
