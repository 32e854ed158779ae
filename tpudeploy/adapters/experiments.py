"""LocalExperiments: `.tpudeploy/runs/ab/ID.json`, one file per A/B. The runs of an A/B are stored with all others."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.ab_test.experiment import Experiment
from tpudeploy.adapters.ids import find_path
from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors
from tpudeploy.serialization import sealed

FORMAT = "tpudeploy.experiment/1"
PREFIX = "ab-"  # begins the id of every A/B, and of no run


class LocalExperiments:
    """Stores A/B experiments as files. An experiment belongs to one user, so nothing is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, experiment: Experiment) -> Path:
        return self.folder / f"{experiment.id}.json"

    def keep(self, experiment: Experiment) -> Experiment:
        """Write the experiment and return it. Raise `errors.StateError` where the file cannot be written."""
        disk.replace(self.path(experiment), sealed.dumps(experiment, FORMAT))
        disk.hide_from_git(self.folder)
        return experiment

    def find(self, id: str) -> Experiment:  # noqa: A002 - the record's word
        """Return the experiment with this id, or with the only id that begins with it.

        Raise `errors.UsageError` where none or several match, and `errors.RunUnreadable`.
        """
        files = sorted(path for path in self.folder.glob("*.json") if not path.name.startswith("."))
        path = find_path(files, id, "A/B", hint="`tpudeploy bench list` names the A/B of each run.")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as cause:
            raise errors.RunUnreadable(f"{path} cannot be read: {cause}.") from cause
        try:
            return sealed.loads(Experiment, text, FORMAT)
        except ValueError as cause:
            hint = "Start a new one: `tpudeploy compare --ab`."
            raise errors.RunUnreadable(f"{path} is not a readable A/B: {cause}.", hint=hint) from cause
