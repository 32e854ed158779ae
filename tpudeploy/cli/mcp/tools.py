"""List the tools of a server: those of the operations, and those that a server itself has.

A tool has its function's name; the docstring is what an agent reads. A few tools do more than their rows: they read
invalid profiles, or keep or start something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.benchmark.view import row
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.documents import Document
from tpudeploy.cli.mcp import answers, writing
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.operation_tool import Response, ToolCall, answer_model, respond_with_result, tool_function
from tpudeploy.cli.mcp.session import Trial
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.declaration import Access
from tpudeploy.operations.declaration import Operation as Row
from tpudeploy.text.paint import Paint
from tpudeploy.views.plan import plan as view


@frozen
class Tool:
    does: Callable[..., Any]
    title: str
    answers: type[answers.Answer]
    access: Access

    @property
    def name(self) -> str:
        return self.does.__name__


_MOMENT = 5.0  # seconds in which an error before the first cell is detected


def _validate_profiles(call: ToolCall) -> Document:
    from tpudeploy.cli.commands.validate import check_profiles

    paths = call.session.project.expand_folders(call.values["profiles"])
    return check_profiles(paths, AS_WRITTEN, call.opened.context).to_dict()


def _keep_plan(call: ToolCall) -> Document:
    """Return the plan, which this server keeps under an id, so that exactly this plan can be applied."""
    plan = call.result()
    stored = call.session.plans.keep(plan, call.paths)
    return {**plan.to_dict(), "plan_id": stored.id, "needs_consent": bool(stored.ends), "text": view(plan, Paint())}


def _keep_trial(call: ToolCall) -> Document:
    """Return the proposal of an A/B, which this server keeps under its id."""
    result, (path,) = call.result(), call.paths
    trial = call.session.trials.keep(lambda _: Trial(path=path, arms=result.arms, proposal=result.proposal))
    return {**result.to_dict(), "ab_id": trial.id, "text": str(result)}


def _measure_in_background(call: ToolCall) -> Document:
    """Start to measure a deployment, and return the operation to poll. Raise what stops it before the first cell."""
    session, (path,) = call.session, call.paths
    clock, name = session.project.clock(), call.opened.profile.spec.name
    stops = [clock.stop]

    def work(tell: EmitEvent) -> Outcome:
        def hear(run: Run, cell: Cell) -> None:
            tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell, Paint()), **to_json(cell)})

        with session.project.workspace([path], backend="", clock=clock) as workspace:
            stops.append(workspace.adapters.stop)
            result = workspace.bench(**call.values, on_cell=hear)
        return Outcome(document=result.to_dict())

    def stop() -> None:
        for each in tuple(stops):
            each()

    about = {"does": "bench", "profile": path}
    return session.operations.begin(work, about=about, names=frozenset({name}), stop=stop, moment=_MOMENT).document()


# What a tool does beside the operation of its row, and the keys of its answer.
_RESPONSES: Mapping[str, Response] = {
    "validate": _validate_profiles,
    "plan": _keep_plan,
    "ab_propose": _keep_trial,
    "bench": _measure_in_background,
}
_ANSWERS: Mapping[str, type[answers.Answer]] = {
    "plan": answers.Planned,
    "ab_propose": answers.AbProposal,
    "bench": answers.Operation,
}
_IN_BACKGROUND = "It runs in the background: poll the operation."


def _tool(row: Row) -> Tool:
    """Return the tool that is made from the row of an operation."""
    does = tool_function(row, _RESPONSES.get(row.tool, respond_with_result))
    if row.access is Access.LOAD:
        does.__doc__ = f"{does.__doc__} {_IN_BACKGROUND}"
    result = row.results[0]
    answer = _ANSWERS.get(row.tool) or answer_model(result.__name__, result)
    return Tool(does=does, title=row.title, answers=answer, access=row.access)


def _session_tool(does: Callable[..., Any], answer: type[answers.Answer] = answers.Operation) -> Tool:
    """Return the tool of the same name as an operation, that needs the session, or a person's approval."""
    row = operation(does.__name__)
    return Tool(does=does, title=row.title, answers=answer, access=row.access)


_OF_OPERATIONS = tuple(_tool(row) for row in map(operation, OPERATIONS) if row.tool)
READING = tuple(tool for tool in _OF_OPERATIONS if tool.access in {Access.OFFLINE, Access.LOOK})

# Only with --allow-writes. An apply may replace or restart, and an A/B restarts, so that both count as destructive.
WRITING = (
    *(tool for tool in _OF_OPERATIONS if tool not in READING),
    _session_tool(writing.apply),
    _session_tool(writing.destroy),
    _session_tool(writing.ab),
    _session_tool(writing.report_host, answer_model("ReportedHost", operation("report_host").results[0])),
    Tool(does=writing.operation, title="Poll an operation", answers=answers.Operation, access=Access.LOOK),
    Tool(does=writing.cancel, title="Cancel an operation", answers=answers.Operation, access=Access.CHANGE),
)
