"""CostBudget: what may be spent in a day and in a month, and whose requests count."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBudget:
    """USD at list price in a day and in a month, both in UTC; None for no limit."""

    usd_per_day: float | None = None
    usd_per_month: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBudgets:
    """The budgets beside the states: of all deployments there together, and of each Google Cloud project."""

    together: CostBudget = CostBudget()
    projects: Mapping[str, CostBudget] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCeiling:
    """USD at list price that the deployments of one run may cost from its beginning on, and each slice to its end.

    `since` is the beginning of the run, in seconds since the epoch. `deployments` may grow while it runs. The `outer`
    ceiling holds too: that of a server whose agents started the run.
    """

    usd: float
    since: float
    deployments: AbstractSet[str]
    outer: CostCeiling | None = None

    @property
    def all(self) -> tuple[CostCeiling, ...]:
        """Return this ceiling and those that hold beside it."""
        return (self,) if self.outer is None else (self, *self.outer.all)
