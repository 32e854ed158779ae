"""Run a benchmark in the background, for the tool `bench`."""

from __future__ import annotations

from tpudeploy.benchmark.view import row
from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.operation_tool import ToolCall
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.serialization import to_json
from tpudeploy.text.paint import Paint

_MOMENT = 5.0  # seconds in which an error before the first cell is detected


def measure_in_background(call: ToolCall) -> Document:
    """Start to measure a deployment, and return the operation to poll. Raise what stops it before the first cell."""
    session, (path,) = call.session, call.paths
    clock, name = session.project.clock(), call.opened.profile.spec.name
    stops = [clock.stop]

    def work(tell: EmitEvent) -> Outcome:
        def hear(run: Run, cell: Cell) -> None:
            tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell, Paint()), **to_json(cell)})

        with session.project.workspace([path], backend="", clock=clock) as workspace:
            stops.append(workspace.stop)
            result = workspace.bench(**call.values, on_cell=hear)
        return Outcome(document=result.to_dict())

    def stop() -> None:
        for each in tuple(stops):
            each()

    about = {"does": "bench", "profile": path}
    return session.operations.begin(work, about=about, names=frozenset({name}), stop=stop, moment=_MOMENT).document()
