"""Hold the data of one running server: its project, the plans and A/Bs it showed, and its operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

from mcp.server.mcpserver import Context

from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.features.agents.operation import Operations
from tpudeploy.features.agents.plans import EntryStore, HasId, Plans, StoredPlan
from tpudeploy.features.agents.project import Project
from tpudeploy.features.agents.spending import ServerSpending
from tpudeploy.operations.declaration import Access
from tpudeploy.planning.effects import worst_cases

E = TypeVar("E", bound=HasId)


class BoughtNames(AbstractSet[str]):
    """The deployments that a server's agents have requested slices for. It only grows; several threads may use it."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()

    def add(self, names: frozenset[str]) -> None:
        self._names |= names

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class AgentSession:
    def __init__(self, project: Project, *, max_cost: float | None = None, allow_writes: bool = False) -> None:
        """`max_cost` is what all that the session requests may cost, in USD; None: a person approves each purchase."""
        self.max_cost = max_cost
        self.allow_writes = allow_writes
        self.accesses: Mapping[str, Access] = {}  # of the tools that the server offers, by their names
        self._began = project.clock().now()
        self._bought = BoughtNames()
        self.spending = ServerSpending(max_cost, project.clock())
        self.project = project.untrusted()  # because agents write the profiles
        self.plans = Plans()
        self._stores: dict[type, EntryStore[Any]] = {}
        self.operations = Operations()

    @property
    def buys_freely(self) -> bool:
        """Whether an agent may request slices without a person's yes, below the ceiling."""
        return self.allow_writes and self.max_cost is not None

    def fix_place(self) -> None:
        """Keep the states and the budgets where they are now, because agents may write settings too."""
        self.project = self.project.fixed(self.spending)

    def store(self, kind: type[E]) -> EntryStore[E]:
        """Return what this server keeps of one kind, such as the A/Bs that it showed."""
        return self._stores.setdefault(kind, EntryStore[Any]())

    def ceiling(self, names: frozenset[str]) -> CostCeiling | None:
        """Return what these deployments, and all others of this session, may cost together since it began.

        It counts those too that come later: a run of hours may request another slice after them.
        """
        if self.max_cost is None:
            return None
        self._bought.add(names)
        return CostCeiling(usd=self.max_cost, since=self._began, deployments=self._bought)

    def covers(self, plan: StoredPlan) -> bool:
        """Return whether the ceiling holds the most that the deployments of this plan cost until their ends.

        One without an end is never covered.
        """
        if self.max_cost is None:
            return False
        most = worst_cases(plan.plan)
        return sum(most.values()) + self.spending.usd(beside=most.keys()) <= self.max_cost

    def ceiling_of(self, plan: StoredPlan) -> CostCeiling | None:
        """Return the ceiling of a plan that may be applied; None if a person said yes to more."""
        if plan.loosens and not self.covers(plan):
            return None
        self.spending.promise(worst_cases(plan.plan))
        return self.ceiling(plan.names)

    def close(self) -> None:
        """Stop the running operations; their progress is saved."""
        self.operations.close()


Call = Context[AgentSession, Any]


def session(call: Call) -> AgentSession:
    """Return the session of the server that received a call."""
    return call.request_context.lifespan_context
