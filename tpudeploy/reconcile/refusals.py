"""What was refused, of which places it speaks, and for how long."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import StrEnum

from tpudeploy import catalog
from tpudeploy.domain.deployment import Candidate, Provisioning
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Refusal, Remedy, Scope
from tpudeploy.domain.state import Attempt, Record, Refused
from tpudeploy.reconcile.landings import Pair, hold_seconds, is_failed_landing, is_remembered, pair, weighed

QUOTAS = frozenset({Scope.ZONE_QUOTA, Scope.REGION_QUOTA})
# Seconds until a full place is asked again, however often it was full: windows last minutes, and a place that is asked
# every T sees a window of mean W with probability (1 - exp(-T/W)) / (T/W). Creates are all that it costs, and the
# project's budget of them (engine/budget.py) says how many there may be.
_FULL = 60.0
# So often a text that nobody knows is taken for a passing trouble.
_TRIES = 3


class Pool(StrEnum):
    """What a quota limits: Google counts chips per pool, not per provisioning model."""

    PREEMPTIBLE = "preemptible"
    ON_DEMAND = "on-demand"


def pool(provisioning: Provisioning) -> Pool:
    """Spot and flex-start share the preemptible quota (Google's page on flex-start; one published note says that
    flex-start draws from the other, UNVERIFIED); on-demand and reserved have their own.
    """
    preemptible = provisioning in {Provisioning.SPOT, Provisioning.FLEX_START}
    return Pool.PREEMPTIBLE if preemptible else Pool.ON_DEMAND


def covers(refused: Refused, place: Candidate | Attempt) -> bool:
    """Whether a refusal speaks of this place too."""
    match refused.scope:
        case Scope.PAIR:
            return (refused.zone, refused.provisioning) == (place.zone, place.provisioning)
        case Scope.ZONE:
            return refused.zone == place.zone
        case Scope.ZONE_QUOTA:
            return refused.zone == place.zone and pool(refused.provisioning) is pool(place.provisioning)
        case Scope.REGION:
            return refused.zone.region == place.zone.region
        case Scope.REGION_QUOTA:
            same_pool = pool(refused.provisioning) is pool(place.provisioning)
            return refused.zone.region == place.zone.region and same_pool
        case Scope.PROJECT:
            return True


def closes(refused: Refused, place: Candidate, chips: int, held: Iterable[Attempt]) -> bool:
    """Whether a standing refusal speaks against asking there for `chips` now, while we hold `held`.

    A quota that was full is full for what we held then; once less is held, there is room for as much again, whatever
    others hold beside us.
    """
    if not covers(refused, place):
        return False
    return refused.scope not in QUOTAS or held_against(refused, held) + chips > refused.held


def standing_refusals(
    candidates: Collection[Candidate], record: Record, now: float, patience: Patience
) -> tuple[Refused, ...]:
    """Return the refusals that still stand, each with the end that it has among these candidates.

    A full quota stays full for as long as something of ours that counts against it is leaving, however long that takes:
    asking before is certain to be refused. It is looked at again with the next poll.
    """
    leaving = [a for a in record.attempts if a.releasing_at is not None]
    stretched = (
        replace(r, until=max(r.until, now + patience.poll_most)) if _is_held_full(r, leaving) else r
        for r in weighed(candidates, record, now, patience)
    )
    return tuple(r for r in stretched if r.until > now)


def kept_out(record: Record) -> frozenset[Pair]:
    """Return the places of which the last word is a quota that chips of ours filled: what they have was never said."""
    last = {pair(r): r for r in sorted(record.refusals, key=lambda r: r.at)}
    return frozenset(place for place, r in last.items() if r.scope in QUOTAS and r.held)


def _is_held_full(refused: Refused, leaving: Iterable[Attempt]) -> bool:
    return refused.scope in QUOTAS and bool(refused.held) and held_against(refused, leaving) > 0


def held_against(refused: Refused, held: Iterable[Attempt]) -> int:
    """The chips among `held` that count against what `refused` speaks of: husks too, until they are deleted."""
    return sum(chips(a) for a in held if covers(refused, a))


def chips(attempt: Attempt) -> int:
    """Of the slice that was asked for."""
    kind = catalog.accelerator_type(str(attempt.spec.get("tpu.type", "")))
    return 0 if kind is None else kind.chips


def remembered(
    refusals: tuple[Refused, ...],
    attempt: Attempt,
    refusal: Refusal,
    *,
    held: Iterable[Attempt],
    now: float,
    patience: Patience,
) -> tuple[Refused, ...]:
    """`refusals` with this one added. `held` is whatever else of ours is there or still leaves.

    What has lapsed is kept a while, for it may be said again: a text that nobody knows is tried a few times, and then
    waits for a person.
    """
    landed = is_failed_landing(attempt, refusal)
    before = next((r for r in refusals if _says_the_same(r, attempt, refusal, landed=landed)), None)
    times = 1 if before is None else before.times + 1
    holds = hold_seconds(refusal.kind, times) if landed else _holds(refusal, times, chips(attempt), patience)
    new = Refused(
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        kind=refusal.kind,
        scope=refusal.scope,
        message=refusal.message,
        at=now,
        until=now + holds,
        limit=refusal.limit,
        known=refusal.is_known,
        stops=refusal.remedy is Remedy.STOP,
        times=times,
        landed=landed,
    )
    new = replace(new, held=held_against(new, held))
    kept = (r for r in refusals if r is not before and (r.until > now - patience.lapsed or is_remembered(r, now)))
    return (*kept, new)


def _says_the_same(refused: Refused, attempt: Attempt, refusal: Refusal, *, landed: bool) -> bool:
    """Whether it counts as said again. However a landing fails, it is one failure more."""
    if (refused.zone, refused.provisioning) != (attempt.zone, attempt.provisioning) or refused.landed != landed:
        return False
    return landed or (refused.kind, refused.scope) == (refusal.kind, refusal.scope)


def _holds(refusal: Refusal, times: int, wanted: int, patience: Patience) -> float:
    """Seconds. A limit below what one slice needs is as good as none."""
    never = refusal.limit is not None and refusal.limit < wanted
    if never or (not refusal.is_known and times >= _TRIES):
        return patience.closed
    if refusal.scope is Scope.PAIR and refusal.remedy is Remedy.NEXT_ZONE and refusal.is_known:
        return min(refusal.holds_seconds, _FULL)
    return refusal.holds_seconds
