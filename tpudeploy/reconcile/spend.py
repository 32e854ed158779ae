"""What each request costs: what was billed by now at the least and at the most, and what may be billed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.ledger import (
    BackendMove,
    EndEvidence,
    Ledger,
    LedgerFact,
    MachineEnd,
    NewRequest,
    PricedRequest,
    Sighting,
    StillRuns,
)
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.state import Attempt, State
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.ledger_facts import priced_request
from tpudeploy.reconcile.machine_end import LATE, earliest_deletion, longest_seconds, next_deletion

_HOUR = 3600.0
# Seconds from the creation of a machine, since when it may be billed, until its grant is seen at the latest. Unverified
# for Google Cloud: published boots took up to six minutes.
_LANDING = 900.0
Counts = Callable[[str, str], bool]  # whether a deployment in a project counts towards a budget


class Billing(StrEnum):
    """What is known of a request by now.

    ran: it has ended.  runs: a run has seen its machine, and nothing known has ended it.  may run: its own end may have
    come since, or no state tracks it.  unknown: no run has seen whether it was granted.
    """

    RAN = "ran"
    RUNS = "runs"
    MAY_RUN = "may run"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """When one request was billed by now.

    It was since `began`, at the least until `certain_until` and at the most until `latest`, for `most_seconds` at the
    most. `ends_by` is when Google (`google_end`) or its own end ends it; infinite without an end.
    `is_bound`: it was found gone, and Google has no record of its end. `is_untracked`: no state tracks it.
    """

    request: PricedRequest
    billing: Billing
    began: float
    certain_until: float
    latest: float
    google_end: float = inf
    ends_by: float = inf
    most_seconds: float = inf
    is_bound: bool = False
    is_untracked: bool = False

    @property
    def may_run(self) -> bool:
        """Whether it may be billed from now on. A machine may miss its own end."""
        is_past = self.billing is Billing.UNKNOWN and self.latest >= self.ends_by
        return self.billing is not Billing.RAN and not is_past

    def seconds(self, since: float, until: float) -> float:
        """Return how long it ran at the most between two moments."""
        return max(0.0, min(self.most_seconds, min(until, self.latest) - max(since, self.began)))

    def most_usd(self, since: float, until: float) -> float:
        """Return the most that it cost between two moments at list price; infinite if its price is unknown."""
        return _usd(self.request.usd_per_hour, self.seconds(since, until), unknown=inf)

    def least_usd(self, since: float, until: float) -> float:
        """Return the least that it cost between two moments at list price; 0 if its price is unknown."""
        return _usd(self.request.usd_per_hour, min(until, self.certain_until) - max(since, self.began), unknown=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """What a request may cost from now on: at most `seconds` of its price, between `since` and `until`.

    Either is infinite for a request without an end. `is_leaving`: it is being deleted, or Google took it.
    `is_open`: it may still be granted. `is_untracked`: no state here tracks it, so that no run here ends it.
    `is_planned`: nothing was requested, a plan would do it.
    """

    deployment: str
    replica: int
    project: str
    name: str
    usd_per_hour: float | None
    since: float
    until: float
    seconds: float = inf
    is_leaving: bool = False
    is_open: bool = False
    is_untracked: bool = False
    is_planned: bool = False

    def usd(self, since: float, until: float) -> float:
        """Return the most that it costs between two moments; infinite if its price is unknown."""
        seconds = min(self.seconds, min(until, self.until) - max(since, self.since))
        return _usd(self.usd_per_hour, seconds, unknown=inf)


def _usd(usd_per_hour: float | None, seconds: float, *, unknown: float) -> float:
    if seconds <= 0.0:
        return 0.0
    return unknown if usd_per_hour is None else usd_per_hour * seconds / _HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSituation:
    """Everything that was billed or may be: the intervals of the ledger, and the exposures of what may still run.

    `unreadable_lines` of the ledger leave out some of it.
    """

    intervals: Sequence[Interval]
    exposures: Sequence[Exposure]
    now: float
    unreadable_lines: int = 0

    def part(self, counts: Counts) -> CostSituation:
        """Return the part that counts."""
        intervals = [each for each in self.intervals if counts(each.request.deployment, each.request.project)]
        exposures = [each for each in self.exposures if counts(each.deployment, each.project)]
        return replace(self, intervals=intervals, exposures=exposures)

    def spent(self, since: float, until: float) -> float:
        """Return the most that was billed by now between two moments. What has no known price is not counted.

        A request that no run has seen counts as an exposure.
        """
        granted = (each for each in self.intervals if each.billing is not Billing.UNKNOWN)
        return sum(usd for each in granted if (usd := each.most_usd(since, until)) < inf)

    def alive(self, since: float, until: float) -> float:
        """Return the most that everything alive may still cost between two moments.

        No run ends what a person took out of a state: the ceiling of a run, which has no end, leaves it out.
        """
        counted = (each for each in self.exposures if not (each.is_untracked and until == inf))
        return sum(each.usd(since, until) for each in counted)


def situation(every: Sequence[Interval], states: Iterable[State], now: float) -> CostSituation:
    """Return everything that was billed or may be: the only place that knows what counts."""
    states = tuple(states)
    tracked_names = {attempt.name for state in states for attempt in state.attempts}
    over = {each.request.name for each in every if each.billing is Billing.RAN}
    alive = [each for state in states for each in exposures(state, now) if each.name not in over]
    alive += [_untracked(each, now) for each in every if each.may_run and each.request.name not in tracked_names]
    return CostSituation(intervals=every, exposures=alive, now=now)


def _untracked(interval: Interval, now: float) -> Exposure:
    """Return what a request may still cost that none of the states tracks, as those of a rehearsal.

    A person removed it from a state, or the state itself, or its state is elsewhere.
    """
    request, is_open = interval.request, interval.billing is Billing.UNKNOWN
    return Exposure(
        deployment=request.deployment,
        replica=request.replica,
        project=request.project,
        name=request.name,
        usd_per_hour=request.usd_per_hour,
        since=interval.began if is_open else now,
        until=interval.ends_by,
        seconds=interval.most_seconds,
        is_open=is_open,
        is_untracked=True,
    )


def account(ledger: Ledger, states: Iterable[State], now: float) -> tuple[Interval, ...]:
    """Return the interval of each request that ran or may have run, by its beginning.

    A request in a state whose facts are lost is taken from the state.
    """
    by_key: dict[tuple[str, str, str], list[LedgerFact]] = {}
    ends: dict[str, tuple[float, float]] = {}
    facts = list(ledger.facts)
    for state in states:
        until = {each.name: each.until for each in exposures(state, now)}
        for index, attempt in state.indexed_attempts:
            ends[attempt.name] = earliest_deletion(attempt, state, now), until[attempt.name]
            if attempt.granted_at is not None:
                request = priced_request(state.deployment, index, attempt)
                facts.append(NewRequest(request=request, at=now, began=attempt.granted_at))
    for fact in facts:
        request = fact.request
        by_key.setdefault((request.project, request.zone, request.name), []).append(fact)
    every: list[Interval] = []
    for (_, _, name), own in by_key.items():
        own_end, ends_by = ends.get(name, (inf, inf))
        own_interval = interval(own, now, own_end=own_end, ends_by=ends_by, is_tracked=name in ends)
        every += [] if own_interval is None else [own_interval]
    return tuple(sorted(every, key=lambda each: (each.began, each.request.name)))


def interval(
    facts: Sequence[LedgerFact],
    now: float,
    *,
    own_end: float = inf,
    ends_by: float = inf,
    is_tracked: bool = True,
) -> Interval | None:
    """Return when one request was billed by these facts, or None if it never ran, or another ledger has it.

    Its machine deletes itself at `own_end` at the earliest, and at `ends_by` at the latest. `is_tracked`: by a state.
    """
    if any(isinstance(fact, BackendMove) for fact in facts):
        return None
    request, end, began = _fullest(facts), _end_seen(facts), _beginning(facts)
    if began is None:
        return _unseen(request, facts, now) if end is None else None
    google_end = next((fact.ends_at for fact in reversed(facts) if isinstance(fact, Sighting) and fact.ends_at), inf)
    last_sighting = max([began, *_sightings(facts)])
    if end is not None:
        return _ended(request, began, last_sighting, end, google_end)
    if google_end <= now:
        return Interval(
            request=request,
            billing=Billing.RAN,
            began=began,
            certain_until=min(last_sighting, google_end),
            latest=google_end,
        )
    return Interval(
        request=request,
        billing=Billing.MAY_RUN if own_end <= now or not is_tracked else Billing.RUNS,
        began=began,
        certain_until=min(last_sighting, now),
        latest=now,
        google_end=google_end,
        ends_by=min(google_end, ends_by),
        is_untracked=not is_tracked,
    )


def _unseen(request: PricedRequest, facts: Iterable[LedgerFact], now: float) -> Interval:
    """Return the interval of a request that no run has seen: it may not have been granted, or since it was sent."""
    requested = [fact for fact in facts if isinstance(fact, NewRequest)]
    ends_by = min((fact.ends_by for fact in requested if fact.ends_by is not None), default=inf)
    began = min((fact.at for fact in facts), default=now)
    return Interval(
        request=request,
        billing=Billing.UNKNOWN,
        began=began,
        certain_until=began,
        latest=min(now, ends_by),
        ends_by=ends_by,
        most_seconds=min((fact.most_seconds for fact in requested if fact.most_seconds is not None), default=inf),
    )


def _ended(request: PricedRequest, began: float, last_sighting: float, end: MachineEnd, google_end: float) -> Interval:
    """Return the interval of a request whose machine is gone. If its end was not seen, Google's own end counts."""
    end_time, is_exact = _end_time(end), end.ended is not None and end.evidence is not EndEvidence.BOUND
    latest = max(began, end_time if end.evidence is EndEvidence.RECORDED else min(end_time, google_end))
    # Google may have preempted a spot slice before.
    is_exact = is_exact or (google_end < end_time and request.provisioning is not Provisioning.SPOT)
    return Interval(
        request=request,
        billing=Billing.RAN,
        began=began,
        certain_until=latest if is_exact else min(last_sighting, latest),
        latest=latest,
        is_bound=not is_exact and end_time <= google_end,
    )


def _fullest(facts: Sequence[LedgerFact]) -> PricedRequest:
    """Return the request by the fact that says most: what gc finds has no model and maybe no price. Else, the last."""
    fact = max(facts, key=lambda fact: (bool(fact.request.model), fact.request.usd_per_hour is not None, fact.at))
    return fact.request


def _end_seen(facts: Iterable[LedgerFact]) -> MachineEnd | None:
    """Return the first fact by which it was gone, or None. A node can outlive its request, and ends later then."""
    facts = tuple(facts)
    reopened = max((fact.at for fact in facts if isinstance(fact, StillRuns)), default=-inf)
    ends = [fact for fact in facts if isinstance(fact, MachineEnd) and _end_time(fact) >= reopened]
    # What a run found, or deduced, counts where Google has no record.
    ends = [end for end in ends if end.evidence is EndEvidence.RECORDED] or ends
    return min(ends, key=_end_time, default=None)


def _end_time(end: MachineEnd) -> float:
    return end.at if end.ended is None else end.ended


def _beginning(facts: Sequence[LedgerFact]) -> float | None:
    """Return when the machine was created, by Google's time if a fact has it, or None if it never ran."""
    created = [fact.began for fact in facts if isinstance(fact, Sighting) and fact.began is not None]
    return min(created or [fact.began for fact in facts if fact.began is not None], default=None)


def _sightings(facts: Iterable[LedgerFact]) -> Iterator[float]:
    """Yield when it certainly ran."""
    for fact in facts:
        if isinstance(fact, Sighting | StillRuns):
            yield fact.at
        elif isinstance(fact, NewRequest) and fact.began is not None:
            yield fact.began


def exposures(state: State, now: float) -> tuple[Exposure, ...]:
    """Return what each request of a state may still cost, each until the end that its machine knows."""
    slices = [_exposure(state, record.index, each, now) for record in state.records for each in record.attempts]
    # The router's VM goes with its deployment.
    ends_at = max((each.until for each in slices), default=inf)
    routers = [_exposure(state, ROUTER, attempt, now, ends_at=ends_at) for attempt in state.router.attempts]
    return (*slices, *routers)


def with_bounds(facts: Iterable[NewRequest], every: Iterable[Exposure]) -> Iterator[NewRequest]:
    """Yield the facts, each with how long, and until when, its request may run if it is granted."""
    bounds = {each.name: each for each in every}
    for fact in facts:
        bound = bounds[fact.request.name]
        ends_by = None if bound.until == inf else bound.until
        yield replace(fact, ends_by=ends_by, most_seconds=None if bound.seconds == inf else bound.seconds)


def _exposure(state: State, replica: int, attempt: Attempt, now: float, *, ends_at: float = inf) -> Exposure:
    granted = attempt.granted_at
    seconds, until = _longest(attempt), min(ends_at, next_deletion(attempt, state, now))
    if granted is None:
        # It may be granted at any moment until it lapses. After its end, it runs until its machine has read that.
        since, seconds = attempt.asked_at, seconds + _LANDING
        until = max(until, (now if attempt.expires_at is None else attempt.expires_at) + _LANDING)
        until = min(until, (inf if attempt.expires_at is None else max(attempt.expires_at, now)) + seconds)
    else:
        since, until = now, min(until, granted + seconds)
    return Exposure(
        deployment=state.deployment,
        replica=replica,
        project=attempt.project,
        name=attempt.name,
        usd_per_hour=prices.usd_per_hour(attempt),
        since=since,
        until=max(until, now),
        seconds=seconds,
        is_leaving=attempt.release is not None or attempt.is_lost,
        is_open=granted is None,
    )


def _longest(attempt: Attempt) -> float:
    """Return how long the machine runs at most from its grant on, in seconds: until Google or its own end ends it."""
    hours = prices.run_hours(attempt)
    return min(inf if hours is None else hours * _HOUR, longest_seconds(attempt))


def seconds_beside_end(start_seconds: float) -> float:
    """Return how long a request may be billed beside its `lifecycle.end`: until it is seen, serves, and is deleted."""
    return _LANDING + start_seconds + LATE
