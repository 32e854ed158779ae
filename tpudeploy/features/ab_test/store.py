"""A/Bs on disk: `.tpudeploy/runs/ab/ID.json`. Their runs are stored with all others."""

from __future__ import annotations

from pathlib import Path

from tpudeploy.adapters import records
from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors
from tpudeploy.features.ab_test.experiment import Experiment
from tpudeploy.serialization import sealed

FORMAT = "tpudeploy.experiment/1"
PREFIX = "ab-"  # begins the id of every A/B, and of no run


class LocalExperiments:
    def __init__(self, files: disk.Folder) -> None:
        self._files = files
        self.folder = files.path

    def path(self, experiment: Experiment) -> Path:
        return self.folder / f"{experiment.id}.json"

    def keep(self, experiment: Experiment) -> Experiment:
        """Write the experiment and return it. Raise `errors.StateError` where the file cannot be written."""
        records.keep(self._files, experiment.id, sealed.dumps(experiment, FORMAT))
        return experiment

    def find(self, id: str) -> Experiment:  # noqa: A002 - the record's word
        """Return the experiment with this id, or with the only id that begins with it.

        Raise `errors.UsageError` where none or several match, and `errors.RunUnreadable`.
        """
        whole_id = records.find_id(
            records.ids(self._files), id, "A/B", hint="`tpudeploy bench list` names the A/B of each run."
        )
        try:
            return sealed.loads(Experiment, records.text(self._files, whole_id), FORMAT)
        except ValueError as cause:
            hint = "Start a new one: `tpudeploy compare --ab`."
            path = self.folder / f"{whole_id}.json"
            raise errors.RunUnreadable(f"{path} is not a readable A/B: {cause}.", hint=hint) from cause
