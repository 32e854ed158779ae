"""Measure throughput and latency of a deployment, and flag figures that cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tpudeploy.operations.benchmark_run import BenchmarkRun
from tpudeploy.operations.declaration import Access, Argument, Kind, Operation, profile

if TYPE_CHECKING:
    from tpudeploy.domain.benchmark import Cell, Run
    from tpudeploy.loading import OneProfile
    from tpudeploy.workspace import Workspace


def bench(
    workspace: Workspace,
    profile: OneProfile,
    *,
    concurrency: Sequence[int] = (1, 4, 16, 64),
    context: Sequence[int] = (128, 1024),
    output: Sequence[int] = (128,),
    window_seconds: float = 60.0,
    duration_seconds: float | None = None,
    on_cell: Callable[[Run, Cell], None] | None = None,
) -> BenchmarkRun:
    """Measure a deployment under load, cell by cell. It slows other users down. Cells that cannot fit are skipped.

    `concurrency` are streams at once, `context` and `output` tokens of a prompt and of an answer; each combination is a
    cell, which is measured for at most `window_seconds`. The run is stored after each cell, and ends after
    `duration_seconds`; `benchmark_run` shows it. A deployment of several replicas is measured through its endpoint.

    Raise `errors.QueryFailed` if the deployment has no endpoint, `errors.UsageError` if its server is not the one that
    the profile declares, `errors.Interrupted` after `stop`.
    """
    from tpudeploy import loading
    from tpudeploy.benchmark.cells import grid
    from tpudeploy.domain.benchmark import Bounds, Sweep
    from tpudeploy.operations.benchmark import Benchmarks

    benchmarks = Benchmarks(workspace)
    sweep = Sweep(
        points=grid(*(sorted(set(axis)) for axis in (concurrency, context, output))), window_seconds=window_seconds
    )
    run = benchmarks.run(
        benchmarks.deployment(loading.profile(profile)),
        sweep,
        bounds=Bounds(seconds=duration_seconds),
        on_cell=on_cell,
    )
    return BenchmarkRun(run=run, path=workspace.adapters.runs.path(run))


def grid_arguments(
    concurrency: tuple[int, ...], context: tuple[int, ...], output: tuple[int, ...]
) -> tuple[Argument, ...]:
    """Return the arguments for the cells to measure, with these defaults."""
    axes = {
        "concurrency": (concurrency, "streams at once"),
        "context": (context, "tokens of a prompt"),
        "output": (output, "tokens of an answer"),
    }
    return tuple(
        Argument(name=name, kind=Kind.COUNTS, default=default, most=_MOST_VALUES, agents=about)
        for name, (default, about) in axes.items()
    )


_MOST_VALUES = 20
WINDOW_SECONDS = Argument(
    name="window_seconds", kind=Kind.SECONDS, default=60.0, most=3600, agents="the longest time to measure a cell"
)

OPERATION = Operation(
    run=bench,
    arguments=(
        profile(),
        *grid_arguments((1, 4, 16, 64), (128, 1024), (128,)),
        WINDOW_SECONDS,
        Argument(name="duration_seconds", kind=Kind.SECONDS, agents="stop after this much measuring"),
    ),
    results=(BenchmarkRun,),
    access=Access.LOAD,
    title="Benchmark",
    tool="bench",
)
