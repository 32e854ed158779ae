"""LocalSheets: `.tpudeploy/runs/accuracy/ID.json`, what servers answered, one file each."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.core.accuracy import sheet
from tpudeploy.core.accuracy.sheet import Sheet
from tpudeploy.domain.errors import UsageError

_MOST_BYTES = 256 * 1024 * 1024


class LocalSheets:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, of: Sheet) -> Path:
        """Raise `errors.StateError` where the disk refuses."""
        path = self.folder / f"{of.id}.json"
        disk.replace(path, sheet.dumps(of))
        disk.hide_from_git(self.folder)
        return path

    def read(self, id: str) -> Sheet:  # noqa: A002 - the record's word
        """One that is kept here. Raise `errors.UsageError` or `errors.RunUnreadable`."""
        path = self.folder / f"{id}.json"
        return sheet.loads(text(path), source=str(path))

    def path(self, name: str, beside: Path) -> Path:
        """A file, or the id of a sheet that is kept here."""
        file, kept = beside / name, self.folder / f"{name}.json"
        return kept if not file.exists() and kept.is_file() else file


def text(path: Path) -> str:
    """Raise `errors.UsageError`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is too large to be questions or answers.")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is no text"
        raise UsageError(f"{path} cannot be read: {why}.") from cause
