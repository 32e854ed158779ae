"""List the tools of a server: those of the operations, and those that a server itself has.

A tool has its function's name; the docstring is what an agent reads. A few tools do more than their rows: they read
invalid profiles, or keep or start something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from tpudeploy.cli.commands.validate import check_profiles
from tpudeploy.cli.documents import Document
from tpudeploy.feature_table import modules
from tpudeploy.features.agents import answers, writing
from tpudeploy.features.agents.aliases import other_names
from tpudeploy.features.agents.consent import needs_yes
from tpudeploy.features.agents.help import get_help
from tpudeploy.features.agents.operation_tool import (
    Response,
    ToolCall,
    answer_model,
    respond_with_result,
    tool_function,
)
from tpudeploy.features.agents.project import with_values
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.declaration import Access
from tpudeploy.operations.declaration import Operation as Row
from tpudeploy.text.paint import Paint
from tpudeploy.views.plan import plan as view


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    does: Callable[..., Any]
    title: str
    answers: type[answers.ToolDocument]
    access: Access

    @property
    def name(self) -> str:
        return self.does.__name__

    @property
    def is_reading(self) -> bool:
        return self.access in {Access.OFFLINE, Access.LOOK}

    @property
    def description(self) -> str:
        """What an agent reads: what it does, and by which other names agents know it."""
        names = ", ".join(other_names(self.name))
        return cleandoc(self.does.__doc__ or "") + (f" Also called {names}." if names else "")


def _validate_profiles(call: ToolCall) -> Document:
    paths = call.session.project.expand_folders(call.values["profiles"])
    return check_profiles(paths, with_values(call.sets), call.opened.context).to_dict()


def _keep_plan(call: ToolCall) -> Document:
    """Return the plan, which this server keeps under an id, so that exactly this plan can be applied."""
    plan = call.result()
    stored = call.session.plans.keep(plan, call.paths)
    asks = needs_yes(stored, call.session)
    return {**plan.to_dict(), "plan_id": stored.id, "needs_consent": asks, "text": view(plan, Paint())}


# What a tool does beside the operation of its row, and the keys of its answer. Features add theirs.
_OF_FEATURES = tuple(modules("tools"))
_RESPONSES: dict[str, Response] = {"validate": _validate_profiles, "plan": _keep_plan}
_ANSWERS: dict[str, type[answers.ToolDocument]] = {"plan": answers.Planned}
for _feature in _OF_FEATURES:
    _RESPONSES |= _feature.RESPONSES
    _ANSWERS |= _feature.ANSWERS
_EITHER_RESULT = frozenset({"doctor"})  # tools of which an argument for agents makes another document
_IN_BACKGROUND = "It runs in the background: poll the operation."


def _tool(row: Row) -> Tool:
    """Return the tool that is made from the row of an operation."""
    does = tool_function(row, _RESPONSES.get(row.tool, respond_with_result))
    if row.access is Access.LOAD:
        does.__doc__ = f"{does.__doc__} {_IN_BACKGROUND}"
    others = row.results[1:] if row.tool in _EITHER_RESULT else ()
    answer = _ANSWERS.get(row.tool) or answer_model(row.results[0], *others)
    return Tool(does=does, title=row.title, answers=answer, access=row.access)


def _session_tool(does: Callable[..., Any], answer: type[answers.ToolDocument] = answers.OperationProgress) -> Tool:
    """Return the tool of the same name as an operation, that needs the session, or a person's approval."""
    row = operation(does.__name__)
    return Tool(does=does, title=row.title, answers=answer, access=row.access)


_OF_OPERATIONS = tuple(
    _tool(row)
    for row in (*map(operation, OPERATIONS), *(row for each in _OF_FEATURES for row in each.ROWS))
    if row.tool
)
READING = (
    *(tool for tool in _OF_OPERATIONS if tool.is_reading),
    Tool(does=get_help, title="Help", answers=answers.Help, access=Access.OFFLINE),
)

# Only with --allow-writes. An apply may replace or restart, and an A/B restarts, so that both count as destructive.
WRITING = (
    *(tool for tool in _OF_OPERATIONS if tool not in READING),
    _session_tool(writing.apply),
    _session_tool(writing.destroy),
    _session_tool(writing.report_host, answer_model(*operation("report_host").results)),
    Tool(does=writing.operation, title="Poll an operation", answers=answers.OperationProgress, access=Access.LOOK),
    Tool(does=writing.cancel, title="Cancel an operation", answers=answers.OperationProgress, access=Access.CHANGE),
    *(_session_tool(does) for feature in _OF_FEATURES for does in feature.WRITING),
)
