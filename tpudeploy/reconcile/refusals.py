"""Refusals: the places that each one covers, and how long it holds.

Why: decisions 19 and 20 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.domain.deployment import Candidate, Place
from tpudeploy.domain.facts import POOLS
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Refusal, RefusalScope, Remedy
from tpudeploy.domain.state import Attempt, Record, RefusalRecord, State
from tpudeploy.reconcile.failed_landings import effective_refusals, hold_seconds, is_failed_landing, makes_doubtful

# The kind of a refusal without words: the request was not answered, and created nothing.
UNANSWERED = "unanswered"
QUOTAS = frozenset({RefusalScope.ZONE_QUOTA, RefusalScope.REGION_QUOTA})
# Seconds until a full place is requested again, however often it was full: windows last minutes, and a place that is
# requested every T sees a window of mean W with probability (1 - exp(-T/W)) / (T/W). It costs only creates, and the
# project's budget of them (engine/budget.py) limits how many there are.
_FULL = 60.0
# Seconds, at most, for which a place that did not answer is left alone. The time doubles with each further request,
# because each costs the wait for a slice that does not appear.
_SILENT = 600.0
# The number of times that an unknown text is treated as a passing fault.
_TRIES = 3


def covers(refused: RefusalRecord, where: Candidate | Attempt) -> bool:
    """Return whether a refusal is about this place too. The two APIs refuse by quotas and capacity of their own.

    Spot and flex-start share the preemptible quota (Google's page on flex-start; one published note says that
    flex-start draws from the other, UNVERIFIED); on-demand and reserved have their own.
    """
    if refused.backend is not where.backend:
        return False
    shares_pool = POOLS[refused.provisioning] is POOLS[where.provisioning]
    match refused.scope:
        case RefusalScope.PAIR:
            return refused.place == where.place
        case RefusalScope.ZONE:
            return refused.zone == where.zone
        case RefusalScope.ZONE_QUOTA:
            return refused.zone == where.zone and shares_pool
        case RefusalScope.REGION | RefusalScope.REGION_RESOURCES:
            return refused.zone.region == where.zone.region
        case RefusalScope.REGION_QUOTA:
            return refused.zone.region == where.zone.region and shares_pool
        case RefusalScope.PROJECT:
            return True


def closes(refused: RefusalRecord, where: Candidate, chips: int, own_attempts: Iterable[Attempt]) -> bool:
    """Return whether an active refusal forbids a request for `chips` there now, beside `own_attempts`.

    A quota that was full is full for what we used then. Once we use less, there is room for as much again, whatever
    others use.
    """
    # What only a person can lift, for example by enabling the API, would be the answer everywhere at this API.
    if refused.stops and refused.backend is where.backend:
        return True
    # It is about other places.
    if not covers(refused, where):
        return False
    # Everything but a quota is refused whatever we use.
    return refused.scope not in QUOTAS or chips_counted_against(refused, own_attempts) + chips > refused.held


def standing_refusals(
    candidates: Collection[Candidate], record: Record, now: float, patience: Patience
) -> tuple[RefusalRecord, ...]:
    """Return the refusals that are still active, each with the end that it has among these candidates.

    A full quota stays full while a slice of ours that counts against it is being deleted, however long that takes: a
    request before is certain to be refused. So its refusal lasts until the next look at least.
    """
    leaving = [attempt for attempt in record.attempts if attempt.releasing_at is not None]
    standing: list[RefusalRecord] = []
    for refused in effective_refusals(candidates, record, now, patience):
        if _is_filled_by(leaving, refused):
            standing.append(replace(refused, until=max(refused.until, now + patience.poll_most)))
        elif refused.until > now:
            standing.append(refused)
    return tuple(standing)


def places_not_stopped(candidates: Iterable[Candidate], refusals: Collection[RefusalRecord]) -> tuple[Candidate, ...]:
    """Return the candidates at the APIs that no refusal stops until a person acts."""
    stopped_backends = {refused.backend for refused in refusals if refused.stops}
    return tuple(candidate for candidate in candidates if candidate.backend not in stopped_backends)


def frees(attempt: Attempt, refused: RefusalRecord) -> bool:
    """Return whether the deletion of a slice of ours makes room in a quota of disks or addresses that was full.

    Its disk and its address are free again, for whichever API. A request that was never granted had neither.
    """
    had_machine = attempt.provisioning_at is not None or attempt.granted_at is not None
    return had_machine and refused.scope is RefusalScope.REGION_RESOURCES and refused.zone.region == attempt.zone.region


def without_freed_refusals(state: State, attempt: Attempt) -> State:
    """Return `state` without the refusals, of any replica, for which a slice that is gone has made room."""
    for record in state.records:
        refusals = tuple(refused for refused in record.refusals if not frees(attempt, refused))
        if refusals != record.refusals:
            state = state.with_record(replace(record, refusals=refusals))
    return state


def places_we_filled(record: Record) -> frozenset[Place]:
    """Return the places whose last refusal is a quota that our own chips filled: their capacity is not known."""
    last = {r.place: r for r in sorted(record.refusals, key=lambda r: r.at)}
    return frozenset(place for place, r in last.items() if r.scope in QUOTAS and r.held)


def _is_filled_by(leaving: Iterable[Attempt], refused: RefusalRecord) -> bool:
    return refused.scope in QUOTAS and refused.held > 0 and chips_counted_against(refused, leaving) > 0


def chips_counted_against(refused: RefusalRecord, own_attempts: Iterable[Attempt]) -> int:
    """Return the chips of ours that count against what `refused` is about: husks too, until they are deleted."""
    return sum(chips_of(a) for a in own_attempts if covers(refused, a))


def chips_of(attempt: Attempt) -> int:
    """Return the chips of the slice that was requested, or 0 for a type that the catalogue does not have."""
    accelerator = catalog.accelerator_type(str(attempt.spec.get("tpu.type")))
    return 0 if accelerator is None else accelerator.chips


def add_refusal(
    refusals: tuple[RefusalRecord, ...],
    attempt: Attempt,
    refusal: Refusal,
    *,
    own_attempts: Iterable[Attempt],
    now: float,
    patience: Patience,
) -> tuple[RefusalRecord, ...]:
    """Return `refusals` with this one added. `own_attempts` are all others that exist, also while they are deleted.

    A lapsed refusal is kept for a while, because it may be repeated: an unknown text is tried a few times, and then
    waits for a person.
    """
    landed = is_failed_landing(attempt, refusal)
    previous = next((r for r in refusals if _is_repetition(r, attempt, refusal, landed=landed)), None)
    times = 1 if previous is None else previous.times + 1
    seconds = hold_seconds(refusal.kind, times) if landed else _refusal_seconds(refusal, times, attempt, patience)
    addition = RefusalRecord(
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        kind=refusal.kind,
        scope=refusal.scope,
        message=refusal.message,
        at=now,
        until=now + seconds,
        limit=refusal.limit,
        known=refusal.is_known,
        stops=refusal.remedy is Remedy.STOP,
        times=times,
        landed=landed,
        backend=attempt.backend,
        zones_available=refusal.zones_available,
    )
    addition = replace(addition, held=chips_counted_against(addition, own_attempts))
    others = (r for r in refusals if r is not previous)
    recent = (r for r in others if r.until > now - patience.lapsed or makes_doubtful(r, now))
    return (*recent, addition)


def _is_repetition(refused: RefusalRecord, attempt: Attempt, refusal: Refusal, *, landed: bool) -> bool:
    # A refusal instead of a grant and a failure after it are counted apart.
    if refused.place != attempt.place or refused.landed != landed:
        return False
    # However a landing fails, it is one more failure.
    return landed or (refused.kind, refused.scope) == (refusal.kind, refusal.scope)


def _refusal_seconds(refusal: Refusal, times: int, attempt: Attempt, patience: Patience) -> float:
    """Return for how long a refusal that came instead of a grant holds, in seconds."""
    is_too_small = refusal.limit is not None and refusal.limit < chips_of(attempt)
    is_hopeless = not refusal.is_known and times >= _TRIES
    # A limit below one slice is as good as none, and an unknown text that repeats will repeat: a person must act.
    if is_too_small or is_hopeless:
        return patience.closed
    # Other places may answer. This one is asked again soon, because it may answer at any moment.
    if refusal.kind == UNANSWERED:
        return min(refusal.holds_seconds * 2.0 ** min(times - 1, 10), _SILENT)
    # The place was full. Windows last minutes, so it is requested again soon, however long the text would hold.
    if refusal.scope is RefusalScope.PAIR and refusal.remedy is Remedy.NEXT_ZONE and refusal.is_known:
        return min(refusal.holds_seconds, _FULL)
    return refusal.holds_seconds
