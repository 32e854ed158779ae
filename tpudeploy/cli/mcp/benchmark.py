"""Define the tools that run and show benchmarks."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from tpudeploy.benchmark.cells import grid
from tpudeploy.benchmark.runfile import dumps
from tpudeploy.benchmark.view import row
from tpudeploy.cli import documents
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.reading import OneProfile
from tpudeploy.cli.mcp.session import Call, session
from tpudeploy.domain.benchmark import Bounds, Cell, Run, Slo, Sweep
from tpudeploy.domain.load import Point
from tpudeploy.domain.serialization import to_json
from tpudeploy.operations.benchmark import Benchmarks
from tpudeploy.text.paint import Paint

Several = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=20)]

_MOMENT = 1.0  # seconds in which a missing load client is detected


def bench(
    ctx: Call,
    profile: OneProfile,
    *,
    concurrency: Annotated[Several, Field(description="streams at once")] = (1, 4, 16, 64),
    context: Annotated[Several, Field(description="tokens of a prompt")] = (128, 1024),
    output: Annotated[Several, Field(description="tokens of an answer")] = (128,),
    window_seconds: Annotated[float, Field(gt=0, le=3600, description="the longest time to measure a cell")] = 60.0,
    duration_seconds: Annotated[float | None, Field(gt=0, description="stop after this much measuring")] = None,
) -> documents.Document:
    """Measure a deployment under load, in the background: poll the operation. It slows other users down.

    Points that cannot fit are skipped. The run is saved: the tools runs and run show it.
    """
    server_session = session(ctx)
    clock = server_session.project.clock()
    sweep = Sweep(points=_points(concurrency, context, output), slo=Slo(), window_seconds=window_seconds)
    with server_session.project.opened(profile) as at:
        name = at.profile.spec.name
        target = Benchmarks(at.workspace).deployment(at.profile)

    def work(tell: EmitEvent) -> Outcome:
        def hear(run: Run, cell: Cell) -> None:
            tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell, Paint()), **to_json(cell)})

        with server_session.project.workspace([profile], backend="", clock=clock) as workspace:
            measuring = Benchmarks(workspace)
            stops.append(measuring.stop)
            run = measuring.run(target, sweep, bounds=Bounds(seconds=duration_seconds), on_cell=hear)
        return Outcome(document=json.loads(dumps(run)))

    stops = [clock.stop]

    def stop() -> None:
        for each in stops:
            each()

    about = {"does": "bench", "profile": profile}
    operation = server_session.operations.begin(work, about=about, names=frozenset({name}), stop=stop, moment=_MOMENT)
    return operation.document()


def _points(*axes: Several) -> tuple[Point, ...]:
    """Return the points of the grid, sorted and without duplicates."""
    return grid(*(sorted(set(axis)) for axis in axes))
