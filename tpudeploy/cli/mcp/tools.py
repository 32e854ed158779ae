"""List the tools of a server in two tables. A tool has its function's name; its docstring is what an agent reads."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from mcp.types import ToolAnnotations

from tpudeploy.cli.mcp import ab_test, answers, benchmark, comparing, looking, offline, planning, serving, writing
from tpudeploy.domain.frozen import frozen


class Kind(Enum):
    """What a call can do. The hints are for clients; the server itself enforces the limits."""

    OFFLINE = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    LOOK = ToolAnnotations(read_only_hint=True, open_world_hint=True)
    CHANGE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
    LOAD = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
    END = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)


@frozen
class Tool:
    does: Callable[..., Any]
    title: str
    answers: type[answers.Answer]
    kind: Kind

    @property
    def name(self) -> str:
        return self.does.__name__


READING = (
    Tool(does=offline.validate, title="Validate profiles", answers=answers.Validated, kind=Kind.OFFLINE),
    Tool(does=offline.size, title="Predict memory", answers=answers.Sized, kind=Kind.OFFLINE),
    Tool(does=offline.alerts, title="Generate alerts", answers=answers.Alerts, kind=Kind.OFFLINE),
    Tool(does=offline.explain, title="Explain an error", answers=answers.Explained, kind=Kind.OFFLINE),
    Tool(does=looking.zones, title="Find zones", answers=answers.Zones, kind=Kind.LOOK),
    Tool(does=looking.doctor, title="Check preconditions", answers=answers.Doctor, kind=Kind.LOOK),
    Tool(does=looking.status, title="Status", answers=answers.Status, kind=Kind.LOOK),
    Tool(does=looking.memory_layout, title="Memory layout", answers=answers.Memory, kind=Kind.LOOK),
    Tool(does=looking.output, title="Endpoint", answers=answers.Output, kind=Kind.LOOK),
    Tool(does=looking.drift, title="Find drift", answers=answers.Drift, kind=Kind.LOOK),
    Tool(does=looking.gc_list, title="Find orphans", answers=answers.Garbage, kind=Kind.LOOK),
    Tool(does=serving.query, title="Ask the model", answers=answers.Completion, kind=Kind.LOOK),
    Tool(does=serving.metrics, title="Read metrics", answers=answers.Metrics, kind=Kind.LOOK),
    Tool(does=serving.logs, title="Read boot logs", answers=answers.Logs, kind=Kind.LOOK),
    Tool(does=serving.diagnose, title="Draft a diagnosis", answers=answers.Diagnosed, kind=Kind.LOOK),
    Tool(does=serving.verify, title="Verify settings", answers=answers.Verified, kind=Kind.LOOK),
    Tool(does=benchmark.runs, title="List benchmarks", answers=answers.Runs, kind=Kind.OFFLINE),
    Tool(does=benchmark.run, title="Show a benchmark", answers=answers.Run, kind=Kind.OFFLINE),
    Tool(does=comparing.compare, title="Compare benchmarks", answers=answers.Comparison, kind=Kind.OFFLINE),
    Tool(does=ab_test.ab_propose, title="Propose an A/B", answers=answers.AbProposal, kind=Kind.LOOK),
    Tool(does=ab_test.ab_result, title="Show an A/B", answers=answers.Ab, kind=Kind.OFFLINE),
    Tool(does=comparing.recommend, title="Recommend a profile", answers=answers.Recommendation, kind=Kind.OFFLINE),
    Tool(does=planning.plan, title="Plan", answers=answers.Planned, kind=Kind.LOOK),
)

# Only with --allow-writes. An apply may replace or restart, and an A/B restarts, so that both count as destructive.
WRITING = (
    Tool(does=writing.apply, title="Apply a plan", answers=answers.Operation, kind=Kind.END),
    Tool(does=writing.destroy, title="Destroy", answers=answers.Operation, kind=Kind.END),
    Tool(does=benchmark.bench, title="Benchmark", answers=answers.Operation, kind=Kind.LOAD),
    Tool(does=ab_test.ab, title="Run an A/B", answers=answers.Operation, kind=Kind.END),
    Tool(does=writing.operation, title="Poll an operation", answers=answers.Operation, kind=Kind.LOOK),
    Tool(does=writing.cancel, title="Cancel an operation", answers=answers.Operation, kind=Kind.CHANGE),
)
