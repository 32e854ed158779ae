"""Proposal: what an A/B is going to do, before it does: restarts, how long nothing serves, time, cost."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.ab_test.order import restarts
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.experiment import Experiment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.side import Side

_HOUR = 3600.0


@frozen
class Proposal:
    """`turns` are those that are left. `then` is the arm that the profile itself is, None for neither.

    `least` and `most` are how many seconds nothing serves at each restart, None where a start cannot be predicted.
    `usd_per_hour` is of the whole slice, None where unknown.
    """

    experiment: Experiment
    turns: tuple[tuple[int, Side], ...]
    now: Side | None
    then: Side | None
    least: float | None
    most: float | None
    where: str
    usd_per_hour: float | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def restarts(self) -> int:
        """The way back is one of them, where there is one."""
        return restarts(self.now, [side for _, side in self.turns], self.then)

    @property
    def measuring_seconds(self) -> float:
        """Windows alone; warm-ups come on top, and questions, where they are asked."""
        sweep = self.experiment.sweep
        return len(self.turns) * len(sweep.points) * sweep.window_seconds

    @property
    def seconds(self) -> float | None:
        """At most, as far as it can be predicted."""
        return None if self.most is None else self.measuring_seconds + self.restarts * self.most

    @property
    def usd(self) -> float | None:
        """What the slice costs meanwhile; it costs that anyway."""
        return None if self.seconds is None or self.usd_per_hour is None else self.seconds * self.usd_per_hour / _HOUR


def start_seconds(arms: Iterable[Deployment], patience: Patience) -> tuple[float, float] | None:
    """How long a restart keeps the endpoint silent, at least (compiled before) and at most; None where unknown."""
    budgets = [arm.budget for arm in arms]
    starts = [budget.start for budget in budgets if isinstance(budget, HbmBudget)]
    if len(starts) < len(budgets):
        return None
    least, most = min(s.warm_seconds for s in starts), max(s.cold_seconds for s in starts)
    return patience.takeover + least, patience.takeover + most
