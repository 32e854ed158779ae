"""Benchmark runs beside the states: `.tpudeploy/runs/ID.json`, or `runs/ID.json` in the bucket."""

from __future__ import annotations

from collections.abc import Callable

from tpudeploy.adapters import records
from tpudeploy.features.benchmark import runfile
from tpudeploy.features.benchmark.published import published
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.ports import RecordStore
from tpudeploy.wiring import Adapters


def stored_runs(adapters: Adapters, prove: Callable[[], None] = lambda: None) -> StoredRuns:
    """Return the runs of a workspace. `prove` is called for each write: see `ports.RecordStore`."""
    return StoredRuns(adapters.records("runs"), prove)


def find_run(adapters: Adapters, name: str) -> Run:
    """Return a published table by its name, else a benchmark run by its id or the beginning of one."""
    table = published().get(name)
    return table if table is not None else stored_runs(adapters).find(name)


class StoredRuns:
    """See `ports.RunStore`. A run is written as a whole after each cell."""

    def __init__(self, store: RecordStore, prove: Callable[[], None] = lambda: None) -> None:
        self._store = store
        self._prove = prove
        self._lines: list[tuple[Cell, str]] = []  # cells of the current run that are already serialised

    def path(self, run: Run) -> str:
        return self._store.place(run.id)

    def keep(self, run: Run) -> None:
        lines_by_cell = {id(cell): text for cell, text in self._lines}
        self._lines = [(cell, lines_by_cell.get(id(cell)) or runfile.line(cell)) for cell in run.cells]
        self._store.keep(run.id, runfile.dumps(run, [text for _, text in self._lines]), prove=self._prove)

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        return self._read(records.find_id(self._store.ids(), id, "run", hint="`tpudeploy bench list` shows them."))

    def all(self) -> tuple[Run, ...]:
        return self.beginning_with("")

    def beginning_with(self, prefix: str) -> tuple[Run, ...]:
        """Return the runs whose ids begin so, oldest first. Raise `errors.RunUnreadable`."""
        runs = (self._read(id_) for id_ in self._store.ids() if id_.startswith(prefix))
        return tuple(sorted(runs, key=lambda run: (run.began_at, run.id)))

    def _read(self, id: str) -> Run:  # noqa: A002 - the record's word
        return runfile.loads(self._store.read(id), source=str(self._store.place(id)))
