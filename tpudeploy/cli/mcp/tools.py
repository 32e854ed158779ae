"""List the tools of a server: those of the operations, and those that a server itself has.

A tool has its function's name; the docstring is what an agent reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tpudeploy.cli.mcp import ab_test, answers, benchmark, reading, writing
from tpudeploy.cli.mcp.operation_tool import answer_model, tool_function
from tpudeploy.domain.frozen import frozen
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.declaration import Access


@frozen
class Tool:
    does: Callable[..., Any]
    title: str
    answers: type[answers.Answer]
    access: Access

    @property
    def name(self) -> str:
        return self.does.__name__


def _tools_of_operations() -> Iterator[Tool]:
    """Yield the tools that are made from the row of an operation alone."""
    for name in OPERATIONS:
        row = operation(name)
        if row.tool and row.tool not in _OF_SESSIONS:
            result = row.results[0]
            answer = answer_model(result.__name__, result)
            yield Tool(does=tool_function(row), title=row.title, answers=answer, access=row.access)


def _of_operation(does: Callable[..., Any], name: str, answer: type[answers.Answer]) -> Tool:
    """Return the tool that does more than the operation: it keeps something for a later call."""
    row = operation(name)
    return Tool(does=does, title=row.title, answers=answer, access=row.access)


_OF_SESSIONS = frozenset({"plan", "validate"})
READING = (
    *_tools_of_operations(),
    _of_operation(reading.validate, "validate", answer_model("Validated", operation("validate").results[0])),
    _of_operation(reading.plan, "plan", answers.Planned),
    Tool(does=ab_test.ab_propose, title="Propose an A/B", answers=answers.AbProposal, access=Access.LOOK),
    Tool(does=ab_test.ab_result, title="Show an A/B", answers=answers.Ab, access=Access.OFFLINE),
)

# Only with --allow-writes. An apply may replace or restart, and an A/B restarts, so that both count as destructive.
WRITING = (
    Tool(does=writing.apply, title="Apply a plan", answers=answers.Operation, access=Access.END),
    Tool(does=writing.destroy, title="Destroy", answers=answers.Operation, access=Access.END),
    Tool(does=benchmark.bench, title="Benchmark", answers=answers.Operation, access=Access.LOAD),
    Tool(does=ab_test.ab, title="Run an A/B", answers=answers.Operation, access=Access.END),
    Tool(does=writing.operation, title="Poll an operation", answers=answers.Operation, access=Access.LOOK),
    Tool(does=writing.cancel, title="Cancel an operation", answers=answers.Operation, access=Access.CHANGE),
)
