"""Run a benchmark in the background, for the tool `bench`."""

from __future__ import annotations

import json

from tpudeploy.benchmark.cells import grid
from tpudeploy.benchmark.runfile import dumps
from tpudeploy.benchmark.view import row
from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.operation_tool import ToolCall
from tpudeploy.domain.benchmark import Bounds, Cell, Run, Slo, Sweep
from tpudeploy.domain.serialization import to_json
from tpudeploy.operations.benchmark import Benchmarks
from tpudeploy.text.paint import Paint

_MOMENT = 1.0  # seconds in which a missing load client is detected


def measure_in_background(call: ToolCall) -> Document:
    """Start to measure a deployment, and return the operation to poll. Raise what stops it before the first cell."""
    session, values, (path,) = call.session, call.values, call.paths
    axes = (values["concurrency"], values["context"], values["output"])
    points = grid(*(sorted(set(axis)) for axis in axes))
    sweep = Sweep(points=points, slo=Slo(), window_seconds=values["window_seconds"])
    clock, name = session.project.clock(), call.opened.profile.spec.name
    target = Benchmarks(call.opened.workspace).deployment(call.opened.profile)
    stops = [clock.stop]

    def work(tell: EmitEvent) -> Outcome:
        def hear(run: Run, cell: Cell) -> None:
            tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell, Paint()), **to_json(cell)})

        with session.project.workspace([path], backend="", clock=clock) as workspace:
            benchmarks = Benchmarks(workspace)
            stops.append(benchmarks.stop)
            run = benchmarks.run(target, sweep, bounds=Bounds(seconds=values["duration_seconds"]), on_cell=hear)
        return Outcome(document=json.loads(dumps(run)))

    def stop() -> None:
        for each in stops:
            each()

    about = {"does": "bench", "profile": path}
    return session.operations.begin(work, about=about, names=frozenset({name}), stop=stop, moment=_MOMENT).document()
