"""The files that a command wrote, as its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.results import Result, document, result
from tpudeploy.text.paint import Paint


@result
class WrittenFiles(Result):
    """The files that were written."""

    FORMAT = "files"
    files: tuple[Path, ...]

    def values(self) -> dict[str, Any]:
        return {"files": [str(path) for path in self.files]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("files", {"files": tuple[str, ...]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return "\n".join(f"Wrote {path}" for path in self.files)


def write_files(contents: Mapping[Path, str], *, here: Path) -> WrittenFiles:
    """Write files for an operator who works in `here`. Raise `errors.UsageError` for one that cannot be written."""
    for path, content in contents.items():
        try:
            disk.replace(path, content, here=here)
        except StateError as cause:
            raise UsageError(cause.message) from cause
    return WrittenFiles(files=tuple(contents))
