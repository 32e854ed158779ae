"""List the benchmark runs of a project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.benchmark import Run
from tpudeploy.operations.declaration import Access, Operation, flag
from tpudeploy.results import Result, document, result

if TYPE_CHECKING:
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class Runs(Result):
    """Benchmark runs. The document has the number of the cells of each run instead of the cells."""

    FORMAT = "runs"
    runs: tuple[Run, ...]
    are_published: bool = False

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def values(self) -> dict[str, Any]:
        from tpudeploy.domain.serialization import to_json

        return {"runs": [{**to_json(run), "cells": len(run.cells)} for run in self.runs]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.schemas.schema_of import CELLS_COUNTED

        return document("runs", {"runs": tuple[Run, ...]}, printed_as={Run: CELLS_COUNTED})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.benchmark.comparison_view import published
        from tpudeploy.benchmark.view import listed

        del width
        return published(self.runs, paint) if self.are_published else listed(self.runs, paint)


def benchmark_runs(workspace: Workspace, *, published: bool = False) -> Runs:
    """List every benchmark of this project, oldest first, without its cells.

    With `published`, list the published tables instead, which `compare` takes by their ids.
    """
    if published:
        from tpudeploy.benchmark.published import published as tables

        return Runs(runs=tuple(tables().values()), are_published=True)
    return Runs(runs=tuple(workspace.adapters.runs.all()))


OPERATION = Operation(
    run=benchmark_runs,
    arguments=(flag("published", "List the published tables.", for_agents=False),),
    results=(Runs,),
    access=Access.OFFLINE,
    title="List benchmarks",
    tool="runs",
)
