"""LocalRuns: `.tpudeploy/runs/ID.json`, one file per run, written as a whole after each cell."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters.ids import find_path
from tpudeploy.adapters.state import disk
from tpudeploy.benchmark import runfile
from tpudeploy.domain import errors
from tpudeploy.domain.benchmark import Cell, Run


class LocalRuns:
    """See `ports.Runs`. A run belongs to one user, so nothing is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: list[tuple[Cell, str]] = []  # cells of the current run that are already serialised

    def path(self, run: Run) -> Path:
        return self.folder / f"{run.id}.json"

    def keep(self, run: Run) -> None:
        lines_by_cell = {id(cell): text for cell, text in self._lines}
        self._lines = [(cell, lines_by_cell.get(id(cell)) or runfile.line(cell)) for cell in run.cells]
        disk.replace(self.path(run), runfile.dumps(run, [text for _, text in self._lines]))
        disk.hide_from_git(self.folder)

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        return _read(find_path(self._files(), id, "run", hint="`tpudeploy bench list` shows them."))

    def all(self) -> tuple[Run, ...]:
        return tuple(sorted(map(_read, self._files()), key=lambda run: (run.began_at, run.id)))

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))


def _read(path: Path) -> Run:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as cause:
        raise errors.RunUnreadable(f"{path} cannot be read: {cause}.") from cause
    return runfile.loads(text, source=str(path))
