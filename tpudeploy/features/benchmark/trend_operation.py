"""Compare a run with the earlier runs of its deployment: the change of each figure, with its interval."""

from __future__ import annotations

from typing import Annotated

from tpudeploy.domain import exits
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.benchmark.trend import FEWEST, TrendRow, earlier_runs, trend
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import EMULATED
from tpudeploy.workspace import Workspace


@result
class BenchmarkTrend(Result):
    """A run beside the earlier runs of the same deployment, slice and load."""

    FORMAT = "trend"
    run: str
    deployment: str
    earlier: Annotated[tuple[str, ...], "the runs that it is compared with, oldest first"]
    rows: Annotated[tuple[TrendRow, ...], "each figure to their level, less 1, with a 95 % prediction interval"]
    is_emulated: bool

    @property
    def regressions(self) -> tuple[TrendRow, ...]:
        return tuple(row for row in self.rows if row.is_regression)

    @property
    def exit_code(self) -> int:
        return exits.CHECK_FAILED if self.regressions else exits.SUCCESS

    @property
    def verdict(self) -> str:
        """Return one sentence."""
        if len(self.earlier) < FEWEST:
            missing = FEWEST - len(self.earlier)
            return f"No trend yet: {missing} more {'run' if missing == 1 else 'runs'} of {self.deployment} are needed."
        if not self.rows:
            return "No cell is trusted in all runs, so nothing can be compared."
        if self.regressions:
            names = ", ".join(str(row.measure) for row in self.regressions)
            return f"{self.deployment} became slower: {names}."
        return f"{self.deployment} is as fast as in the last {len(self.earlier)} runs."

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del width
        head = f"{'':10} {'change':>8}   95 % interval"
        table = [head, *(_line(row, paint) for row in self.rows)] if self.rows else []
        emulated = [paint.yellow(EMULATED)] if self.is_emulated else []
        return "\n".join([*emulated, *table, self.verdict])


def _line(row: TrendRow, paint: Paint) -> str:
    text = f"{row.measure:10} {row.change:+8.1%}   {row.low:+.1%} to {row.high:+.1%}"
    return f"{text}  {paint.red('regression')}" if row.is_regression else text


def benchmark_trend(workspace: Workspace, run_id: str) -> BenchmarkTrend:
    """Compare a run with up to 14 earlier runs of the same deployment, slice and load, with a prediction interval.

    `run_id` is its id or the beginning of one. Raise `errors.UsageError` for an unknown id, `errors.RunUnreadable`.
    """
    store = stored_runs(workspace.adapters)
    run = store.find(run_id)
    earlier = earlier_runs(run, store.all())
    return BenchmarkTrend(
        run=run.id,
        deployment=run.subject.deployment,
        earlier=tuple(each.id for each in earlier),
        rows=trend(run, earlier),
        is_emulated=run.subject.is_emulated,
    )


OPERATION = Operation(
    run=benchmark_trend,
    results=(BenchmarkTrend,),
    access=Access.OFFLINE,
    title="Trend of a benchmark",
)
