"""List the tools of a server: those of the operations, and those that a server itself has.

A tool has its function's name; the docstring is what an agent reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.cli.mcp import ab_test, answers, responses, writing
from tpudeploy.cli.mcp.operation_tool import Response, answer_model, respond_with_result, tool_function
from tpudeploy.domain.frozen import frozen
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.declaration import Access
from tpudeploy.operations.declaration import Operation as Row


@frozen
class Tool:
    does: Callable[..., Any]
    title: str
    answers: type[answers.Answer]
    access: Access

    @property
    def name(self) -> str:
        return self.does.__name__


# What a tool does beside the operation of its row, and the keys of its answer.
_RESPONSES: Mapping[str, Response] = {
    "validate": responses.validate_profiles,
    "plan": responses.keep_plan,
    "ab_propose": responses.keep_trial,
    "bench": responses.measure_in_background,
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
    _session_tool(ab_test.ab),
    _session_tool(writing.report_host, answer_model("ReportedHost", operation("report_host").results[0])),
    Tool(does=writing.operation, title="Poll an operation", answers=answers.Operation, access=Access.LOOK),
    Tool(does=writing.cancel, title="Cancel an operation", answers=answers.Operation, access=Access.CHANGE),
)
