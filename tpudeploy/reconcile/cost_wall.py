"""Whether one more request is within the budgets: what was spent, what everything alive may cost yet, and the request.

A budget of a day is held in today and in tomorrow, one of a month in this month and in the next two: everything that is
counted has begun by now, so no later day or month costs more. Days and months are those of UTC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf

from tpudeploy.domain.cost_budget import CostBudget, CostCeiling, TeamBudgets
from tpudeploy.reconcile.spend import CostSituation, Counts, Exposure

_ROUNDING = 1e-6
UNREADABLE_HINT = (
    "Restore .tpudeploy/ledger.jsonl (in a bucket: ledger/) from a copy, or remove what is damaged. Until then no"
    " request passes a budget, because money may have been spent."
)


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

    `waits`: it fits once what is leaving, or another open request, is gone. With `unreadable_lines` in the ledger, what
    was spent is unknown.
    """

    period: BudgetPeriod
    spent: float
    alive: float
    request: float
    planned: float = 0.0
    waits: bool = False
    unreadable_lines: int = 0

    @property
    def arithmetic(self) -> str:
        """Return the sum, as messages show it."""
        if self.unreadable_lines:
            return f"{unreadable(self.unreadable_lines)}, so what counts towards {self.period.key} is unknown"
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
        counted = situation.part(counts)
        for period in scope_periods:
            short = _shortfall(period, counted, request)
            if short is not None and not short.waits:
                return short
            waiting = waiting or short
    return waiting


def unreadable(lines: int) -> str:
    """Return what is wrong with a ledger of which this number of lines cannot be read."""
    return f"{lines} line{'' if lines == 1 else 's'} of the ledger of costs cannot be read"


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
    if any(each.request.deployment in deployments for each in situation.intervals):
        endless = CostBudget(usd_per_month=inf)
        yield from _use_in_periods(situation, endless, "", "", lambda name, _project: name in deployments)


def _is_deployment(name: str) -> Counts:
    return lambda other, _: other == name


def _is_one_of(names: AbstractSet[str]) -> Counts:
    return lambda deployment, _project: deployment in names


def _is_project(project: str) -> Counts:
    return lambda _, other: other == project


def _use_in_periods(
    situation: CostSituation, budget: CostBudget, key: str, deployment: str, counts: Counts
) -> Iterator[BudgetUse]:
    counted = situation.part(counts)
    for period in periods(budget, key, situation.now):
        if period.since <= situation.now < period.until:
            spent, most = counted.spent(period.since, period.until), counted.alive(period.since, period.until)
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
) -> Iterator[tuple[Iterable[BudgetPeriod], Counts]]:
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


def _shortfall(period: BudgetPeriod, situation: CostSituation, request: Exposure) -> Shortfall | None:
    since, until = period.since, period.until
    spent = situation.spent(since, until)
    most, planned, staying = (
        replace(situation, exposures=[each for each in situation.exposures if counts(each)]).alive(since, until)
        for counts in (lambda e: not e.is_planned, lambda e: e.is_planned, lambda e: not _may_go(e, request))
    )
    # A budget only holds what has an end.
    own = inf if request.until == inf else request.usd(since, until)
    limit = period.usd + _ROUNDING
    # What costs nothing in a period is not refused for it.
    if not own or (spent + most + planned + own <= limit and not situation.unreadable_lines):
        return None
    return Shortfall(
        period=period,
        spent=spent,
        alive=most,
        request=own,
        planned=planned,
        waits=spent + staying + own <= limit and not situation.unreadable_lines,
        unreadable_lines=situation.unreadable_lines,
    )


def _may_go(other: Exposure, request: Exposure) -> bool:
    is_sibling = (other.deployment, other.replica) == (request.deployment, request.replica)
    return other.is_leaving or (other.is_open and is_sibling)
