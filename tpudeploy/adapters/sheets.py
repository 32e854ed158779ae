"""LocalSheets: `.tpudeploy/runs/accuracy/ID.json`, the answers of servers, one file per sheet."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.accuracy import sheet
from tpudeploy.accuracy.sheet import Sheet
from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import UsageError

_MOST_BYTES = 256 * 1024 * 1024


class LocalSheets:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, answers: Sheet) -> Path:
        """Write a sheet and return its path. Raise `errors.StateError` where it cannot be written."""
        path = self.folder / f"{answers.id}.json"
        disk.replace(path, sheet.dumps(answers))
        disk.hide_from_git(self.folder)
        return path

    def read(self, id: str) -> Sheet:  # noqa: A002 - the record's word
        """Return the sheet with this id. Raise `errors.UsageError` or `errors.RunUnreadable`."""
        path = self.folder / f"{id}.json"
        return sheet.loads(text(path), source=str(path))

    def path(self, name: str, beside: Path) -> Path:
        """Return the path of a sheet, given as a file or as the id of a stored sheet."""
        file, stored = beside / name, self.folder / f"{name}.json"
        return stored if not file.exists() and stored.is_file() else file


def text(path: Path) -> str:
    """Return the text of a file of questions or answers. Raise `errors.UsageError`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is too large to be questions or answers.")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text"
        raise UsageError(f"{path} cannot be read: {why}.") from cause
