"""Show benchmark runs: one with all its cells, the list of a project, and the operating points of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.comparison_view import published
from tpudeploy.features.benchmark.documents import run
from tpudeploy.features.benchmark.operating import operating_points as points_of
from tpudeploy.features.benchmark.operating_view import operating as operating_view
from tpudeploy.features.benchmark.published import published as tables
from tpudeploy.features.benchmark.recommendation import OperatingPoint
from tpudeploy.features.benchmark.run import Run
from tpudeploy.features.benchmark.runfile import dumps
from tpudeploy.features.benchmark.store import find_run, stored_runs
from tpudeploy.features.benchmark.view import listed
from tpudeploy.features.benchmark.view import result as view
from tpudeploy.operations.arguments import Agents, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, document, result
from tpudeploy.schemas.schema_of import CELLS_COUNTED
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

RunId: TypeAlias = Annotated[str, Arg(positional=True, agents=Agents("its id, or a prefix of it"))]


@result
class BenchmarkRun(Result):
    """One benchmark run with all its cells. The document is the run as it is stored, with its hash."""

    FORMAT = "run"
    IS_DOCUMENT = False
    run: Run
    path: str  # the file that keeps it, or its URL

    def to_dict(self) -> dict[str, Any]:
        keys: dict[str, Any] = json.loads(dumps(self.run))
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return run()

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "id", "subject", "cells")

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return "\n" + view(self.run, paint, path=self.path, width=width)


def benchmark_run(workspace: Workspace, run_id: RunId) -> BenchmarkRun:
    """Show one benchmark with all its cells: the measurements, and why some cells were skipped.

    `run_id` is an id or the beginning of one. Raise `errors.UsageError` for an unknown or ambiguous id.
    """
    runs = stored_runs(workspace.adapters)
    run = runs.find(run_id)
    return BenchmarkRun(run=run, path=runs.path(run))


@result
class Runs(Result):
    """Benchmark runs. The document has the number of the cells of each run instead of the cells."""

    FORMAT = "runs"
    runs: tuple[Run, ...]
    are_published: bool = False

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def values(self) -> dict[str, Any]:
        return {"runs": [{**to_json(run), "cells": len(run.cells)} for run in self.runs]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("runs", {"runs": tuple[Run, ...]}, printed_as={Run: CELLS_COUNTED})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        view = published if self.are_published else listed
        return view(self.runs, paint, width=width)


def benchmark_runs(
    workspace: Workspace, *, published: Annotated[bool, Arg("List the published tables.", agents=None)] = False
) -> Runs:
    """List every benchmark of this project, oldest first, without its cells.

    With `published`, list the published tables instead, which `compare` takes by their ids.
    """
    if published:
        return Runs(runs=tuple(tables().values()), are_published=True)
    return Runs(runs=tuple(stored_runs(workspace.adapters).all()))


@result
class OperatingPoints(Result):
    """The operating points of a run, by the tokens of a prompt and of an answer."""

    FORMAT = "operating"
    run: Run
    points: Mapping[tuple[int | None, int | None], Sequence[OperatingPoint]]

    def values(self) -> dict[str, Any]:
        loads = [
            {"context_tokens": context, "output_tokens": output, "points": [to_json(point) for point in points]}
            for (context, output), points in self.points.items()
        ]
        return {"run": self.run.id, "emulated": self.run.subject.is_emulated, "loads": loads}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        load = {"context_tokens": int | None, "output_tokens": int | None, "points": tuple[OperatingPoint, ...]}
        return document("operating", {"emulated": bool, "run": str, "loads": [load]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return operating_view(self.run, self.points, paint)


def operating_points(workspace: Workspace, run_id: RunId) -> OperatingPoints:
    """Show where a run is fastest, cheapest and balanced, for each load. Raise `errors.UsageError` for no such run."""
    run = find_run(workspace.adapters, run_id)
    return OperatingPoints(run=run, points=points_of(run))


OPERATIONS: Mapping[str, Operation] = {
    "benchmark_run": Operation(
        run=benchmark_run,
        results=(BenchmarkRun,),
        access=Access.OFFLINE,
        title="Show a benchmark",
        tool="run",
    ),
    "benchmark_runs": Operation(
        run=benchmark_runs,
        results=(Runs,),
        access=Access.OFFLINE,
        title="List benchmarks",
        tool="runs",
    ),
    "operating_points": Operation(run=operating_points, results=(OperatingPoints,), access=Access.OFFLINE),
}
