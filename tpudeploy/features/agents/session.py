"""Hold the data of one running server: its project, the plans and A/Bs it showed, and its operations."""

from __future__ import annotations

from typing import Any, TypeVar

from mcp.server.mcpserver import Context

from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.features.agents.operation import Operations
from tpudeploy.features.agents.plans import EntryStore, HasId, Plans
from tpudeploy.features.agents.project import Project

E = TypeVar("E", bound=HasId)


class AgentSession:
    def __init__(self, project: Project, *, max_cost: float | None = None) -> None:
        """`max_cost` is what all that the session requests may cost, in USD; None: a person approves each purchase."""
        self.max_cost = max_cost
        self._began = project.clock().now()
        self._bought: frozenset[str] = frozenset()
        self.project = project.untrusted()  # because agents write the profiles
        self.plans = Plans()
        self._stores: dict[type, EntryStore[Any]] = {}
        self.operations = Operations()

    def store(self, kind: type[E]) -> EntryStore[E]:
        """Return what this server keeps of one kind, such as the A/Bs that it showed."""
        return self._stores.setdefault(kind, EntryStore[Any]())

    def ceiling(self, names: frozenset[str]) -> CostCeiling | None:
        """Return what these deployments, and all applied before, may cost together since the session began."""
        if self.max_cost is None:
            return None
        self._bought |= names
        return CostCeiling(usd=self.max_cost, since=self._began, deployments=self._bought)

    def close(self) -> None:
        """Stop the running operations; their progress is saved."""
        self.operations.close()


Call = Context[AgentSession, Any]


def session(call: Call) -> AgentSession:
    """Return the session of the server that received a call."""
    return call.request_context.lifespan_context
