"""Where to ask next: pure policy over what the profile allows and what was refused."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from tpudeploy.domain.deployment import Candidate, Deployment, Provisioning
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Refusal, Scope
from tpudeploy.domain.state import Attempt, Refused


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


def allows(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether the profile (still) allows the place where this attempt asked."""
    return any((c.zone, c.provisioning) == (attempt.zone, attempt.provisioning) for c in deployment.candidates)


def next_candidate(candidates: Iterable[Candidate], refusals: Iterable[Refused], now: float) -> Candidate | None:
    """The first pair, in the profile's order, that no standing refusal speaks against."""
    standing = [r for r in refusals if r.until > now]
    return next((c for c in candidates if not any(covers(r, c) for r in standing)), None)


def opens_at(candidates: Iterable[Candidate], refusals: Iterable[Refused], now: float) -> float:
    """When the first of these pairs may be asked again, in seconds since the epoch."""
    standing = [r for r in refusals if r.until > now]
    return min(max((r.until for r in standing if covers(r, c)), default=now) for c in candidates)


def is_closed(candidates: Iterable[Candidate], refusals: Iterable[Refused], now: float, patience: Patience) -> bool:
    """Whether every pair is refused for so long that a person, not time, must open one."""
    places = tuple(candidates)
    return bool(places) and opens_at(places, refusals, now) - now > patience.refused


def covers(refused: Refused, candidate: Candidate) -> bool:
    """Whether a refusal speaks of this candidate too."""
    same_pool = pool(refused.provisioning) is pool(candidate.provisioning)
    match refused.scope:
        case Scope.PAIR:
            return (refused.zone, refused.provisioning) == (candidate.zone, candidate.provisioning)
        case Scope.ZONE:
            return refused.zone == candidate.zone
        case Scope.ZONE_QUOTA:
            return refused.zone == candidate.zone and same_pool
        case Scope.REGION:
            return refused.zone.region == candidate.zone.region
        case Scope.REGION_QUOTA:
            return refused.zone.region == candidate.zone.region and same_pool
        case Scope.PROJECT:
            return True


def remembered(refusals: tuple[Refused, ...], attempt: Attempt, refusal: Refusal, now: float) -> tuple[Refused, ...]:
    """`refusals` with this one added and the lapsed ones dropped."""
    new = Refused(
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        kind=refusal.kind,
        scope=refusal.scope,
        message=refusal.message,
        at=now,
        until=now + refusal.holds_seconds,
        limit=refusal.limit,
        known=refusal.is_known,
    )
    return (*(r for r in refusals if r.until > now), new)
