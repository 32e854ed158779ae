"""LocalExperiments: `.tpudeploy/runs/ab/ID.json`, one file an A/B; its runs lie beside all others."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters.ids import found
from tpudeploy.adapters.state import disk
from tpudeploy.core.ab import experimentfile
from tpudeploy.domain import errors
from tpudeploy.domain.experiment import Experiment

PREFIX = "ab-"  # of every id: no run's begins so


class LocalExperiments:
    """An experiment is its owner's alone: nothing is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, of: Experiment) -> Path:
        return self.folder / f"{of.id}.json"

    def keep(self, of: Experiment) -> Experiment:
        """Itself. Raise `errors.StateError` where the disk refuses."""
        disk.replace(self.path(of), experimentfile.dumps(of))
        disk.hide_from_git(self.folder)
        return of

    def find(self, id: str) -> Experiment:  # noqa: A002 - the record's word
        """Raise `errors.UsageError` where there is none, or are several; `errors.RunUnreadable`."""
        files = sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))
        path = found(files, id, "A/B", hint="`tpudeploy bench list` names the A/B of each run.")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as cause:
            raise errors.RunUnreadable(f"{path} cannot be read: {cause}.") from cause
        return experimentfile.loads(text, source=str(path))
