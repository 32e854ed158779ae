"""Compare benchmark runs with each other and with published figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from annotated_types import MinLen

from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.compare import compare as compared
from tpudeploy.features.benchmark.comparison import Comparison, Measure
from tpudeploy.features.benchmark.comparison_view import comparison as view
from tpudeploy.features.benchmark.run import Run
from tpudeploy.features.benchmark.store import find_run
from tpudeploy.operations.arguments import Agents, Arg
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, document, result
from tpudeploy.schemas.schema_of import CELLS_COUNTED
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_FEWEST = 2


@result
class Compared(Result):
    """A comparison of runs, cell by cell. `measure` is the one that the text shows."""

    FORMAT = "comparison"
    comparison: Comparison
    measure: Measure = Measure.REQUESTS

    def values(self) -> dict[str, Any]:
        """Return every compared cell; each run has the number of its cells instead of the cells."""
        keys: dict[str, Any] = to_json(self.comparison)
        return keys | {"runs": [{**run, "cells": len(run["cells"])} for run in keys["runs"]]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("comparison", {}, Comparison, printed_as={Run: CELLS_COUNTED})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view(self.comparison, self.measure, paint, width=width)


def compare(
    workspace: Workspace,
    run_ids: Annotated[Iterable[str], MinLen(_FEWEST), Arg(agents=Agents("ids of runs, or names of published tables"))],
    *,
    by: Measure | str | None = None,
) -> Compared:
    """Compare benchmarks point by point: throughput, latency, tokens per dollar, and the gain from more chips.

    Each is the id of a run, the beginning of one, or the name of a published table. Raise `errors.UsageError` for
    fewer than two, and for one that is unknown.
    """
    ids = list(run_ids)
    if len(ids) < _FEWEST:
        raise UsageError(
            "`compare` needs two or more runs.",
            hint="`tpudeploy bench list` shows yours, `tpudeploy compare --published` those of others.",
        )
    comparison = compared([find_run(workspace.adapters, each) for each in ids])
    return Compared(comparison=comparison, measure=Measure(by or Measure.REQUESTS))


OPERATION = Operation(
    run=compare,
    results=(Compared,),
    access=Access.OFFLINE,
    title="Compare benchmarks",
    tool="compare",
)
