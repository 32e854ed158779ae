"""The turns of an A/B, A B A B … A, and the proposal: restarts, downtime, time and cost before anything is changed.

Every repeat has its own start of the server, and the last one is of the first arm. Refused: A B B A, where neighbours
share one start. The luck of that start would count twice, as if it were two repeats; where starts differ and nothing
else does, an interval that should miss one time in twenty then misses one in eight (three pairs) or one in six (five).
Turns that begin and end alike lie symmetrically in time, so a drift favours neither arm (D. R. Cox, Some systematic
experimental designs, Biometrika 38, 1951); and the A/B ends with the arm that usually serves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.patience import Patience
from tpudeploy.features.ab_test.experiment import Experiment
from tpudeploy.features.benchmark.run import Side

FEWEST = 2  # repeats: with one, three figures would have to show the difference, the drift and the noise
_HOUR = 3600.0


def order(repeats: int) -> tuple[Side, ...]:
    """Return the arms in their order: `repeats` times B, and A once more."""
    return (Side.A, *(Side.B, Side.A) * repeats)


def restarts(now: Side | None, turns: Iterable[Side], then: Side | None) -> int:
    """Return the number of restarts from the arm `now` over `turns` to the arm `then`; None: the server is neither."""
    return sum(before is not after or before is None for before, after in pairwise((now, *turns, then)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPlan:
    """The plan of an A/B for its remaining `turns`.

    `now` is the arm that serves, and `then` the arm that the profile declares; None for neither. `least` and `most` are
    the seconds without service at each restart, None where a start cannot be predicted. `usd_per_hour` is the price of
    the whole slice, None where unknown. Of several `replicas`, `at_once` are restarted together while the others serve;
    the price is that of all of them.
    """

    experiment: Experiment
    turns: tuple[tuple[int, Side], ...]
    now: Side | None
    then: Side | None
    least: float | None
    most: float | None
    where: str
    usd_per_hour: float | None
    replicas: int = 1
    at_once: int = 1
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def restarts(self) -> int:
        """The number of restarts, including the one back to the profile if it needs one."""
        return restarts(self.now, [side for _, side in self.turns], self.then)

    @property
    def measuring_seconds(self) -> float:
        """The longest windows together, without warm-ups and questions."""
        sweep = self.experiment.sweep
        return len(self.turns) * len(sweep.points) * sweep.window_seconds

    @property
    def seconds(self) -> float | None:
        """The longest duration, as far as it can be predicted."""
        if self.most is None:
            return None
        rounds = -(-self.replicas // self.at_once)
        return self.measuring_seconds + self.restarts * rounds * self.most

    @property
    def usd(self) -> float | None:
        """The cost of the slices meanwhile, which accrues with or without an A/B."""
        if self.seconds is None or self.usd_per_hour is None:
            return None
        return self.seconds * self.usd_per_hour / _HOUR


def start_seconds(arms: Iterable[Deployment], patience: Patience) -> tuple[float, float] | None:
    """Return the shortest (compiled before) and the longest time without service at a restart; None where unknown."""
    budgets = [arm.budget for arm in arms]
    starts = [budget.start for budget in budgets if isinstance(budget, HbmBudget)]
    if len(starts) < len(budgets):
        return None
    least, most = min(s.warm_seconds for s in starts), max(s.cold_seconds for s in starts)
    return patience.takeover + least, patience.takeover + most
