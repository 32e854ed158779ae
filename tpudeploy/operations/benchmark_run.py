"""Show one benchmark run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.benchmark import Run
from tpudeploy.operations.declaration import Access, Argument, Operation
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from pathlib import Path

    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class BenchmarkRun(Result):
    """One benchmark run with all its cells. The document is the run as it is stored, with its hash."""

    FORMAT = "run"
    IS_DOCUMENT = False
    run: Run
    path: Path  # of the file that keeps it

    def to_dict(self) -> dict[str, Any]:
        from tpudeploy.benchmark.runfile import dumps

        keys: dict[str, Any] = json.loads(dumps(self.run))
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.schemas.documents import run

        return run()

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "id", "subject", "cells")

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.benchmark.view import result as view

        return "\n" + view(self.run, paint, path=str(self.path), width=width)


def benchmark_run(workspace: Workspace, run_id: str) -> BenchmarkRun:
    """Show one benchmark with all its cells: the measurements, and why some cells were skipped.

    `run_id` is an id or the beginning of one. Raise `errors.UsageError` for an unknown or ambiguous id.
    """
    runs = workspace.adapters.runs
    run = runs.find(run_id)
    return BenchmarkRun(run=run, path=runs.path(run))


OPERATION = Operation(
    run=benchmark_run,
    arguments=(Argument(name="run_id", is_required=True, positional=True, agents="its id, or a prefix of it"),),
    results=(BenchmarkRun,),
    access=Access.OFFLINE,
    title="Show a benchmark",
    tool="run",
)
