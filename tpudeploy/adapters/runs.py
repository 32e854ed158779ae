"""Measurements on disk, one file each: runs, A/Bs (their runs are stored with all others) and answers to questions.

They belong to one user, so nothing is locked: `.tpudeploy/runs/ID.json`, `runs/ab/ID.json`, `runs/accuracy/ID.json`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tpudeploy.ab_test.experiment import Experiment
from tpudeploy.accuracy import sheet
from tpudeploy.accuracy.sheet import Sheet
from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state import disk
from tpudeploy.benchmark import runfile
from tpudeploy.domain import errors
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.serialization import sealed

FORMAT = "tpudeploy.experiment/1"
PREFIX = "ab-"  # begins the id of every A/B, and of no run
_MOST_BYTES = 256 * 1024 * 1024  # of questions and answers


def new_id(now: float) -> str:
    """Return a unique id for the time `now` (seconds since the epoch). Ids sort by time."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def _find_id(ids: Sequence[str], id: str, what: str, *, hint: str) -> str:  # noqa: A002 - the record's word
    """Return this id, or the only one that begins with it.

    Raise `errors.UsageError` where none or several match; `hint` is the remedy where none does.
    """
    matches = [each for each in ids if each.startswith(id)]
    exact = [each for each in matches if each == id] or matches
    if len(exact) == 1:
        return exact[0]
    if not exact:
        raise errors.UsageError(f"There is no {what} `{id}`.", hint=hint)
    raise errors.UsageError(f"`{id}` matches several {what}s: {', '.join(exact)}.", hint="Write more of the id.")


class LocalRuns:
    """See `ports.Runs`. A run is written as a whole after each cell."""

    def __init__(self, files: disk.Folder) -> None:
        self._files = files
        self.folder = files.path
        self._lines: list[tuple[Cell, str]] = []  # cells of the current run that are already serialised

    def path(self, run: Run) -> Path:
        return self.folder / f"{run.id}.json"

    def keep(self, run: Run) -> None:
        lines_by_cell = {id(cell): text for cell, text in self._lines}
        self._lines = [(cell, lines_by_cell.get(id(cell)) or runfile.line(cell)) for cell in run.cells]
        _keep(self._files, run.id, runfile.dumps(run, [text for _, text in self._lines]))

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        return self._read(_find_id(_ids(self._files), id, "run", hint="`tpudeploy bench list` shows them."))

    def all(self) -> tuple[Run, ...]:
        return tuple(sorted(map(self._read, _ids(self._files)), key=lambda run: (run.began_at, run.id)))

    def experiments(self) -> LocalExperiments:
        """Return the A/Bs, which are stored below the runs."""
        return LocalExperiments(self._files.sub("ab"))

    def sheets(self) -> LocalSheets:
        """Return the answers to questions, which are stored below the runs."""
        return LocalSheets(self._files.sub("accuracy"))

    def _read(self, id: str) -> Run:  # noqa: A002 - the record's word
        return runfile.loads(_text(self._files, id), source=str(self.folder / f"{id}.json"))


class LocalExperiments:
    def __init__(self, files: disk.Folder) -> None:
        self._files = files
        self.folder = files.path

    def path(self, experiment: Experiment) -> Path:
        return self.folder / f"{experiment.id}.json"

    def keep(self, experiment: Experiment) -> Experiment:
        """Write the experiment and return it. Raise `errors.StateError` where the file cannot be written."""
        _keep(self._files, experiment.id, sealed.dumps(experiment, FORMAT))
        return experiment

    def find(self, id: str) -> Experiment:  # noqa: A002 - the record's word
        """Return the experiment with this id, or with the only id that begins with it.

        Raise `errors.UsageError` where none or several match, and `errors.RunUnreadable`.
        """
        whole_id = _find_id(_ids(self._files), id, "A/B", hint="`tpudeploy bench list` names the A/B of each run.")
        try:
            return sealed.loads(Experiment, _text(self._files, whole_id), FORMAT)
        except ValueError as cause:
            hint = "Start a new one: `tpudeploy compare --ab`."
            path = self.folder / f"{whole_id}.json"
            raise errors.RunUnreadable(f"{path} is not a readable A/B: {cause}.", hint=hint) from cause


class LocalSheets:
    def __init__(self, files: disk.Folder) -> None:
        self._files = files
        self.folder = files.path

    def keep(self, answers: Sheet) -> Path:
        """Write a sheet and return its path. Raise `errors.StateError` where it cannot be written."""
        _keep(self._files, answers.id, sheet.dumps(answers))
        return self.folder / f"{answers.id}.json"

    def read(self, id: str) -> Sheet:  # noqa: A002 - the record's word
        """Return the sheet with this id. Raise `errors.UsageError` or `errors.RunUnreadable`."""
        return sheet.loads(_text(self._files, id), source=str(self.folder / f"{id}.json"))

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


def _keep(files: disk.Folder, id: str, text: str) -> None:  # noqa: A002 - the record's word
    files.replace(f"{id}.json", text)
    with files.writing():
        files.hide_from_git()


def _ids(files: disk.Folder) -> list[str]:
    return sorted(name.removesuffix(".json") for name in files.files(".json"))


def _text(files: disk.Folder, id: str) -> str:  # noqa: A002 - the record's word
    try:
        return files.read(f"{id}.json").decode("utf-8")
    except (OSError, ValueError) as cause:
        raise errors.RunUnreadable(f"{files.path / f'{id}.json'} cannot be read: {cause}.") from cause
