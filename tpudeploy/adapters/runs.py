"""LocalRuns: `.tpudeploy/runs/ID.json`, one file a run, written whole after each cell."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters.ids import found
from tpudeploy.adapters.state import disk
from tpudeploy.core.bench import runfile
from tpudeploy.domain import errors
from tpudeploy.domain.benchmark import Cell, Run


class LocalRuns:
    """See `ports.Runs`. A run is its owner's alone: nothing is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: list[tuple[Cell, str]] = []  # of the run that is kept again and again

    def path(self, run: Run) -> Path:
        return self.folder / f"{run.id}.json"

    def keep(self, run: Run) -> None:
        known = {id(cell): text for cell, text in self._lines}
        self._lines = [(cell, known.get(id(cell)) or runfile.line(cell)) for cell in run.cells]
        disk.replace(self.path(run), runfile.dumps(run, [text for _, text in self._lines]))
        disk.hide_from_git(self.folder)

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        return _read(found(self._files(), id, "run", hint="`tpudeploy bench list` shows them."))

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
