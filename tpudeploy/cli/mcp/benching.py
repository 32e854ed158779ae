"""Tools that measure, and tell what was measured."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from tpudeploy.benching import Benching
from tpudeploy.cli import documents
from tpudeploy.cli.mcp.offline import OneProfile
from tpudeploy.cli.mcp.operation import Came, Tell
from tpudeploy.cli.mcp.session import Asked, session
from tpudeploy.core.bench.grid import grid
from tpudeploy.core.bench.runfile import dumps
from tpudeploy.domain.benchmark import Bounds, Cell, Run, Slo, Sweep
from tpudeploy.domain.load import Point
from tpudeploy.domain.tree import tree
from tpudeploy.views.bench import row
from tpudeploy.views.paint import Paint

Several = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1, max_length=20)]

_MOMENT = 1.0  # seconds in which it is found out that no load client is installed


def bench(
    ctx: Asked,
    profile: OneProfile,
    *,
    concurrency: Annotated[Several, Field(description="streams at once")] = (1, 4, 16, 64),
    context: Annotated[Several, Field(description="tokens of a prompt")] = (128, 1024),
    output: Annotated[Several, Field(description="tokens of an answer")] = (128,),
    window_seconds: Annotated[float, Field(gt=0, le=3600, description="measure a cell for so long at most")] = 60.0,
    duration_seconds: Annotated[float | None, Field(gt=0, description="end after so much measuring")] = None,
) -> documents.Document:
    """Measure a deployment under load, in the background: poll the operation. Whoever uses it meanwhile is slowed down.

    Points that cannot fit are skipped. The run is kept: runs and run tell of it.
    """
    of = session(ctx)
    clock = of.project.clock()
    sweep = Sweep(points=_points(concurrency, context, output), slo=Slo(), window_seconds=window_seconds)
    with of.project.opened(profile) as at:
        name = at.profile.spec.name
        target = Benching(at.workspace).deployment(at.profile)

    def work(tell: Tell) -> Came:
        def hear(run: Run, cell: Cell) -> None:
            tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell, Paint()), **tree(cell)})

        with of.project.workspace([profile], backend="", clock=clock) as workspace:
            measuring = Benching(workspace)
            stops.append(measuring.stop)
            run = measuring.run(target, sweep, bounds=Bounds(seconds=duration_seconds), on_cell=hear)
        return Came(document=json.loads(dumps(run)))

    stops = [clock.stop]

    def stop() -> None:
        for each in stops:
            each()

    about = {"does": "bench", "profile": profile}
    begun = of.operations.begin(work, about=about, names=frozenset({name}), stop=stop, moment=_MOMENT)
    return begun.document()


def runs(ctx: Asked) -> documents.Document:
    """Every benchmark that was measured in this project, oldest first, without its cells."""
    with session(ctx).project.opened() as at:
        return documents.runs(at.workspace.runs.all())


def run(
    ctx: Asked, run_id: Annotated[str, Field(min_length=1, description="its id, or a beginning of it")]
) -> documents.Document:
    """One benchmark with all its cells: what was measured, and why what was not was skipped."""
    with session(ctx).project.opened() as at:
        found: documents.Document = json.loads(dumps(at.workspace.runs.find(run_id)))
    return found


def _points(*axes: Several) -> tuple[Point, ...]:
    """Each once, in order."""
    return grid(*(sorted(set(axis)) for axis in axes))
