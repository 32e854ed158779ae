"""Benchmark runs on disk: `.tpudeploy/runs/ID.json`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.adapters import records
from tpudeploy.adapters.state import disk
from tpudeploy.features.benchmark import runfile
from tpudeploy.features.benchmark.published import published
from tpudeploy.features.benchmark.run import Cell, Run

if TYPE_CHECKING:
    from tpudeploy.wiring import Adapters


def stored_runs(adapters: Adapters) -> LocalRuns:
    return LocalRuns(adapters.own_folder("runs"))


def find_run(adapters: Adapters, name: str) -> Run:
    """Return a published table by its name, else a benchmark run by its id or the beginning of one."""
    table = published().get(name)
    return table if table is not None else stored_runs(adapters).find(name)


class LocalRuns:
    """See `Runs`. A run is written as a whole after each cell."""

    def __init__(self, files: disk.Folder) -> None:
        self._files = files
        self.folder = files.path
        self._lines: list[tuple[Cell, str]] = []  # cells of the current run that are already serialised

    def path(self, run: Run) -> Path:
        return self.folder / f"{run.id}.json"

    def keep(self, run: Run) -> None:
        lines_by_cell = {id(cell): text for cell, text in self._lines}
        self._lines = [(cell, lines_by_cell.get(id(cell)) or runfile.line(cell)) for cell in run.cells]
        records.keep(self._files, run.id, runfile.dumps(run, [text for _, text in self._lines]))

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        return self._read(
            records.find_id(records.ids(self._files), id, "run", hint="`tpudeploy bench list` shows them.")
        )

    def all(self) -> tuple[Run, ...]:
        return tuple(sorted(map(self._read, records.ids(self._files)), key=lambda run: (run.began_at, run.id)))

    def _read(self, id: str) -> Run:  # noqa: A002 - the record's word
        return runfile.loads(records.text(self._files, id), source=str(self.folder / f"{id}.json"))
