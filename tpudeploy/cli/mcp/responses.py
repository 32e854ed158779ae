"""Respond to the tools that do more than their rows: they read invalid profiles, or keep or start something."""

from __future__ import annotations

from tpudeploy.benchmark.view import row
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.operation_tool import ToolCall
from tpudeploy.cli.mcp.session import Trial
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.serialization import to_json
from tpudeploy.text.paint import Paint
from tpudeploy.views.plan import plan as view

_MOMENT = 5.0  # seconds in which an error before the first cell is detected


def validate_profiles(call: ToolCall) -> Document:
    from tpudeploy.cli.commands.validate import check_profiles

    paths = call.session.project.expand_folders(call.values["profiles"])
    return check_profiles(paths, AS_WRITTEN, call.opened.context).to_dict()


def keep_plan(call: ToolCall) -> Document:
    """Return the plan, which this server keeps under an id, so that exactly this plan can be applied."""
    plan = call.result()
    stored = call.session.plans.keep(plan, call.paths)
    return {**plan.to_dict(), "plan_id": stored.id, "needs_consent": bool(stored.ends), "text": view(plan, Paint())}


def keep_trial(call: ToolCall) -> Document:
    """Return the proposal of an A/B, which this server keeps under its id."""
    result, (path,) = call.result(), call.paths
    trial = call.session.trials.keep(lambda _: Trial(path=path, arms=result.arms, proposal=result.proposal))
    return {**result.to_dict(), "ab_id": trial.id, "text": str(result)}


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
