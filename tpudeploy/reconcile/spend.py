"""What requests cost: each once, with the time that its machine ran, and when it ends at the latest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from tpudeploy.domain.ledger import LedgerEvent, LedgerLine
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.state import Attempt, State
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.ledger_lines import line_of
from tpudeploy.reconcile.machine_end import LATE, longest_seconds, next_deletion

_HOUR = 3600.0
# Seconds from the creation of a machine, since when it may be billed, until its grant is seen at the latest. Unverified
# for Google Cloud: published boots took up to six minutes.
_LANDING = 900.0


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
    seconds: float
    is_leaving: bool = False
    is_open: bool = False
    is_untracked: bool = False
    is_planned: bool = False

    def usd(self, since: float, until: float) -> float:
        """Return the most that it costs between two moments; infinite if its price is unknown."""
        seconds = max(0.0, min(self.seconds, min(until, self.until) - max(since, self.since)))
        if not seconds:
            return 0.0
        return inf if self.usd_per_hour is None else self.usd_per_hour * seconds / _HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One request that ran: from `began` until `ended`, None while it runs or may run.

    `is_untracked`: no state tracks it any more, so that nothing here shows whether it still runs. `is_bound`: it was
    found to be gone at `ended`, and Google has no time for it: it may have ended before.
    """

    line: LedgerLine
    began: float
    ended: float | None
    ends_at: float | None
    is_untracked: bool = False
    is_bound: bool = False

    def seconds(self, since: float, until: float) -> float:
        """Return how long it ran between two moments."""
        ended = until if self.ended is None else min(until, self.ended)
        return max(0.0, ended - max(since, self.began))

    def usd(self, since: float, until: float) -> float | None:
        """Return what it cost between two moments at list price, or None if its price is unknown."""
        price = self.line.usd_per_hour
        return None if price is None else price * self.seconds(since, until) / _HOUR

    @property
    def is_running(self) -> bool:
        return self.ended is None


def charges(lines: Iterable[LedgerLine], states: Iterable[State], now: float) -> tuple[Charge, ...]:
    """Return what ran, by its beginning. A request in a state whose lines are lost is taken from the state."""
    by_name: dict[tuple[str, str, str], list[LedgerLine]] = {}
    for line in (*lines, *_of_states(states, now)):
        by_name.setdefault((line.project, line.zone, line.name), []).append(line)
    every = (_charge(own) for own in by_name.values())
    return tuple(sorted((each for each in every if each is not None), key=lambda each: (each.began, each.line.name)))


def _of_states(states: Iterable[State], now: float) -> Iterator[LedgerLine]:
    for state in states:
        for index, attempt in state.indexed_attempts:
            if attempt.granted_at is not None:
                began = attempt.granted_at
                yield line_of(LedgerEvent.REQUESTED, state.deployment, index, attempt, now, began=began)


def _charge(lines: Sequence[LedgerLine]) -> Charge | None:
    """Return the charge of one request, or None for one that never ran, or that another ledger has."""
    if any(line.event is LedgerEvent.MOVED for line in lines):
        return None
    began = _beginning(lines)
    if began is None:
        return None
    last = max(lines, key=lambda line: line.at)
    ends_at = next((line.ends_at for line in reversed(lines) if line.ends_at is not None), None)
    end = _end_seen(lines)
    is_untracked = end is None and last.event is LedgerEvent.UNTRACKED
    charge = Charge(line=_fullest(lines), began=began, ended=None, ends_at=ends_at, is_untracked=is_untracked)
    if end is None or end.ended is None:
        return charge
    # If its end was not seen, Google's own time for it counts.
    ended = end.ended if ends_at is None else min(end.ended, ends_at)
    return replace(charge, ended=max(began, ended), is_bound=end.is_bound and ended == end.ended)


def _fullest(lines: Sequence[LedgerLine]) -> LedgerLine:
    """Return the line that says most: what gc finds has no model and maybe no price. Of equals, the last."""
    return max(lines, key=lambda line: (bool(line.model), line.usd_per_hour is not None, line.at))


def _end_seen(lines: Sequence[LedgerLine]) -> LedgerLine | None:
    """Return the first line by which it was gone, or None. A node can outlive its request, and ends later then."""
    reopened = max((line.at for line in lines if line.event is LedgerEvent.RUNNING and line.reason), default=-inf)
    ends = [line for line in lines if line.event is LedgerEvent.GONE and (line.ended or -inf) >= reopened]
    # What a run found, or deduced, counts where Google has no record.
    ends = [line for line in ends if line.is_recorded] or ends
    return min(ends, key=lambda line: line.ended or inf, default=None)


def _beginning(lines: Sequence[LedgerLine]) -> float | None:
    """Return when the machine was created, by Google's time if a line has it, or None if it never ran."""
    created = _times(lines, LedgerEvent.RUNNING, "began")
    return min(created or [line.began for line in lines if line.began is not None], default=None)


def _times(lines: Iterable[LedgerLine], event: LedgerEvent, key: str) -> list[float]:
    times = (getattr(line, key) for line in lines if line.event is event)
    return [time for time in times if time is not None]


def exposures(state: State, now: float) -> tuple[Exposure, ...]:
    """Return what each request of a state may still cost, each until the end that its machine knows."""
    slices = [_exposure(state, record.index, each, now) for record in state.records for each in record.attempts]
    # The router's VM goes with its deployment.
    ends_at = max((each.until for each in slices), default=inf)
    routers = [_exposure(state, ROUTER, attempt, now, ends_at=ends_at) for attempt in state.router.attempts]
    return (*slices, *routers)


def untracked_exposures(every: Iterable[Charge], states: Iterable[State], now: float) -> Iterator[Exposure]:
    """Yield what slices may still cost that run and that none of these states tracks.

    A person removed them from a state, or the state itself, or their states are elsewhere, as those of a rehearsal are.
    """
    tracked_names = {attempt.name for state in states for attempt in state.attempts}
    for charge in every:
        if charge.is_running and charge.line.name not in tracked_names:
            line, until = charge.line, inf if charge.ends_at is None else charge.ends_at
            yield Exposure(
                deployment=line.deployment,
                replica=line.replica,
                project=line.project,
                name=line.name,
                usd_per_hour=line.usd_per_hour,
                since=now,
                until=until,
                seconds=inf,
                is_untracked=True,
            )


def with_bounds(lines: Iterable[LedgerLine], every: Iterable[Exposure]) -> Iterator[LedgerLine]:
    """Yield the lines of requests, each with how long, and until when, it may run if it is granted."""
    bounds = {each.name: each for each in every}
    for line in lines:
        bound = bounds[line.name]
        ends_by = None if bound.until == inf else bound.until
        most_seconds = None if bound.seconds == inf else bound.seconds
        yield replace(line, ends_by=ends_by, most_seconds=most_seconds)


def open_requests(lines: Iterable[LedgerLine], now: float) -> tuple[LedgerLine, ...]:
    """Return the requests that were never seen to run or to be gone, and that may be granted yet, or may run unseen."""
    by_name: dict[tuple[str, str, str], list[LedgerLine]] = {}
    for line in lines:
        by_name.setdefault((line.project, line.zone, line.name), []).append(line)
    # A line that says that it was removed from a state, or that it was requested, says nothing of its machine.
    waiting = {LedgerEvent.REQUESTED, LedgerEvent.UNTRACKED}
    requests = [line for own in by_name.values() if waiting.issuperset(each.event for each in own) for line in own]
    return tuple(line for line in requests if line.began is None and line.ends_by is not None and line.ends_by > now)


def open_exposures(requests: Iterable[LedgerLine], states: Iterable[State], now: float) -> Iterator[Exposure]:
    """Yield what requests may cost that wait, and that none of these states tracks, as those of a rehearsal."""
    tracked_names = {attempt.name for state in states for attempt in state.attempts}
    for line in requests:
        if line.name not in tracked_names and line.ends_by is not None:
            yield Exposure(
                deployment=line.deployment,
                replica=line.replica,
                project=line.project,
                name=line.name,
                usd_per_hour=line.usd_per_hour,
                since=now,
                until=line.ends_by,
                seconds=inf if line.most_seconds is None else line.most_seconds,
                is_open=True,
                is_untracked=True,
            )


def with_own_ends(every: Iterable[Charge], states: Iterable[State], now: float) -> tuple[Charge, ...]:
    """Return the charges, of those that run with the end that their deployment gives them, if it is the earlier one."""
    ends = {each.name: each.until for state in states for each in exposures(state, now)}

    def with_end(charge: Charge) -> Charge:
        ends_at = min(ends.get(charge.line.name, inf), inf if charge.ends_at is None else charge.ends_at)
        return replace(charge, ends_at=ends_at) if charge.is_running and ends_at != inf else charge

    return tuple(map(with_end, every))


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
