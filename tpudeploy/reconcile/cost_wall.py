"""Whether one more request is within the budgets: what was spent, what everything alive may cost yet, and the request.

A budget of a day is held in today and in tomorrow, one of a month in this month and in the next two: everything that is
counted has begun by now, so no later day or month costs more. Days and months are those of UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf

from tpudeploy.domain.cost_budget import CostBudget, CostCeiling, TeamBudgets
from tpudeploy.reconcile.spend import Charge, Exposure

_ROUNDING = 1e-6
_Counts = Callable[[str, str], bool]  # whether a deployment in a project counts towards a budget


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPeriod:
    """One limit: `usd` between two moments. `key` is where it is written, `label` says when it holds."""

    usd: float
    since: float
    until: float
    key: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """A limit that a request would pass. `planned` is what the requests of a plan before this one would cost.

    `waits`: it fits once what is leaving, or another open request, is gone.
    """

    period: BudgetPeriod
    spent: float
    alive: float
    request: float
    planned: float = 0.0
    waits: bool = False

    @property
    def arithmetic(self) -> str:
        """Return the sum, as messages show it."""
        if inf in (self.request, self.alive, self.planned):
            subject = "this request" if self.request == inf else "what is alive"
            return f"{subject} has no end or no known price"
        total = self.spent + self.alive + self.planned + self.request
        planned = f" + ${self.planned:.2f} for what this plan requests before it" if self.planned else ""
        return (
            f"${self.spent:.2f} spent + ${self.alive:.2f} that what is alive may still cost{planned} +"
            f" ${self.request:.2f} for this request = ${total:.2f}, and {self.period.key} is ${self.period.usd:.2f}"
            f" {self.period.label}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSituation:
    """Everything that is billed, or may be: the charges of the ledger, and the exposures of the states."""

    charges: Sequence[Charge]
    exposures: Sequence[Exposure]
    now: float


def shortfall(
    situation: CostSituation,
    request: Exposure,
    *,
    own: CostBudget | None,
    team: TeamBudgets | None,
    ceiling: CostCeiling | None,
) -> Shortfall | None:
    """Return the first limit that the request would pass, or None. One that waits comes last."""
    waiting: Shortfall | None = None
    for scope_periods, counts in _scopes(request, own, team, ceiling, situation.now):
        charges = [each for each in situation.charges if counts(each.line.deployment, each.line.project)]
        alive = [each for each in situation.exposures if counts(each.deployment, each.project)]
        for period in scope_periods:
            short = _shortfall(period, charges, alive, request, situation.now)
            if short is not None and not short.waits:
                return short
            waiting = waiting or short
    return waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """What a budget of now has left. `deployment` is whose it is, "" for one of a team."""

    deployment: str
    period: BudgetPeriod
    spent: float
    alive: float

    @property
    def remainder(self) -> float:
        return self.period.usd - self.spent - self.alive


def budget_uses(
    situation: CostSituation, own: Mapping[str, CostBudget], team: TeamBudgets | None
) -> Iterator[BudgetUse]:
    """Yield the use of each budget that holds today: of these deployments, then of a team and of its projects."""
    for name, budget in own.items():
        yield from _use_in_periods(situation, budget, "budget", name, _is_deployment(name))
    if team is not None:
        yield from _use_in_periods(situation, team.together, "budgets.yaml", "", lambda _name, _project: True)
        for project, budget in team.projects.items():
            key = f"budgets.yaml projects.{project}"
            yield from _use_in_periods(situation, budget, key, "", _is_project(project))


def month_use(situation: CostSituation, deployments: Collection[str]) -> Iterator[BudgetUse]:
    """Yield what these deployments cost in this month, without a budget; nothing if they never had a slice."""
    if any(each.line.deployment in deployments for each in situation.charges):
        endless = CostBudget(usd_per_month=inf)
        yield from _use_in_periods(situation, endless, "", "", lambda name, _project: name in deployments)


def _is_deployment(name: str) -> _Counts:
    return lambda other, _: other == name


def _is_one_of(names: AbstractSet[str]) -> _Counts:
    return lambda deployment, _project: deployment in names


def _is_project(project: str) -> _Counts:
    return lambda _, other: other == project


def _use_in_periods(
    situation: CostSituation, budget: CostBudget, key: str, deployment: str, counts: _Counts
) -> Iterator[BudgetUse]:
    charges = [each for each in situation.charges if counts(each.line.deployment, each.line.project)]
    alive = [each for each in situation.exposures if counts(each.deployment, each.project)]
    for period in periods(budget, key, situation.now):
        if period.since <= situation.now < period.until:
            spent, most = _spent(period, charges, situation.now), _most(period, alive)
            yield BudgetUse(deployment=deployment, period=period, spent=spent, alive=most)


def periods(budget: CostBudget, key: str, now: float) -> Iterator[BudgetPeriod]:
    """Yield the days and months in which a budget is held."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if budget.usd_per_day is not None:
        for begin in (today, today + timedelta(days=1)):
            yield _period(budget.usd_per_day, begin, begin + timedelta(days=1), f"{key}.day", f"on {begin:%Y-%m-%d}")
    begin = today.replace(day=1)
    for _ in range(3 if budget.usd_per_month is not None else 0):
        end = (begin + timedelta(days=32)).replace(day=1)
        yield _period(budget.usd_per_month or 0.0, begin, end, f"{key}.month", f"in {begin:%Y-%m}")
        begin = end


def _period(usd: float, begin: datetime, end: datetime, key: str, label: str) -> BudgetPeriod:
    return BudgetPeriod(usd=usd, since=begin.timestamp(), until=end.timestamp(), key=key, label=f"{label} (UTC)")


def _scopes(
    request: Exposure, own: CostBudget | None, team: TeamBudgets | None, ceiling: CostCeiling | None, now: float
) -> Iterator[tuple[Iterable[BudgetPeriod], _Counts]]:
    """Yield the limits that hold for a request, with which deployments and projects count towards each."""
    for each in () if ceiling is None else ceiling.all:
        whole = BudgetPeriod(usd=each.usd, since=each.since, until=inf, key="-max-cost", label="for this run")
        yield (whole,), _is_one_of(each.deployments)
    if own is not None:
        yield periods(own, "budget", now), _is_deployment(request.deployment)
    if team is not None:
        yield periods(team.together, "budgets.yaml", now), lambda _name, _project: True
        if request.project in team.projects:
            key = f"budgets.yaml projects.{request.project}"
            yield periods(team.projects[request.project], key, now), _is_project(request.project)


def _shortfall(
    period: BudgetPeriod, charges: Sequence[Charge], alive: Sequence[Exposure], request: Exposure, now: float
) -> Shortfall | None:
    spent = _spent(period, charges, now)
    most = _most(period, [each for each in alive if not each.is_planned])
    planned = _most(period, [each for each in alive if each.is_planned])
    # A budget only holds what has an end.
    own = inf if request.until == inf else request.usd(period.since, period.until)
    limit = period.usd + _ROUNDING
    # What costs nothing in a period is not refused for it.
    if not own or spent + most + planned + own <= limit:
        return None
    staying = [each for each in alive if not _may_go(each, request)]
    waits = spent + _most(period, staying) + own <= limit
    return Shortfall(period=period, spent=spent, alive=most, request=own, planned=planned, waits=waits)


def _may_go(other: Exposure, request: Exposure) -> bool:
    is_sibling = (other.deployment, other.replica) == (request.deployment, request.replica)
    return other.is_leaving or (other.is_open and is_sibling)


def _spent(period: BudgetPeriod, charges: Iterable[Charge], now: float) -> float:
    # What has ended counts whole, also where this machine's clock is behind.
    ends = ((each, min(period.until, now) if each.is_running else period.until) for each in charges)
    return sum(each.usd(period.since, until) or 0.0 for each, until in ends)


def _most(period: BudgetPeriod, alive: Iterable[Exposure]) -> float:
    # No run ends what a person took out of a state: the ceiling of a run, which has no end of its own, leaves it out.
    counted = (each for each in alive if not (each.is_untracked and period.until == inf))
    return sum(each.usd(period.since, period.until) for each in counted)
