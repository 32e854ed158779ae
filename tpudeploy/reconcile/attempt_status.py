"""Classify one attempt by one observation: the first half of every decision to reconcile.

           ┌── hidden    asked, not visible yet: it may still appear
           ├── refused   its create operation failed, and it never showed: it is watched a little longer
attempt ───┼── waiting   alive: queued or provisioning
           ├── up        alive: a machine stands there
           ├── dead      still listed, useless: to be released
           ├── leaving   released, or going by itself: looked at until it is gone
           └── gone      certainly not there: to be forgotten
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Observed, Phase, Refusal, Remedy, Scope, Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile.failed_landings import early_preemption

# Why a request is given up whose create operation failed.
REFUSED = "refused"


class AttemptStatus(StrEnum):
    HIDDEN = "hidden"
    REFUSED = "refused"
    WAITING = "waiting"
    UP = "up"
    DEAD = "dead"
    LEAVING = "leaving"
    GONE = "gone"


@frozen
class DecisionContext:
    """One look, how long we are ready to wait, how many creates the project has left, and what luck each pair had.

    `creates_in`: seconds until it has one more. `renews`: a run that ends may be taken over, though no plan showed it.
    `acquisition`: the longest that a grant took lately, in seconds.
    `may_reset`: a node that does not take over a change may be rebooted. `may_ask`: a slice may be asked for, even
    beside one that stands.
    """

    observed: Observed
    patience: Patience
    creates: int = 1000
    creates_in: float = 0.0
    luck: Mapping[tuple[Zone, Provisioning], float] = field(default_factory=dict)
    may_reset: bool = False
    may_ask: bool = True
    renews: bool = False
    acquisition: float = 0.0

    @property
    def now(self) -> float:
        return self.observed.at


@frozen
class Classification:
    attempt: Attempt
    status: AttemptStatus
    slice: Slice | None
    reason: str = ""
    refusal: Refusal | None = None


def classify(attempt: Attempt, context: DecisionContext) -> Classification:
    found = context.observed.slices.get(attempt.name)
    if attempt.name in context.observed.unseen:
        status = AttemptStatus.WAITING if attempt.releasing_at is None else AttemptStatus.LEAVING
        return Classification(attempt=attempt, status=status, slice=None, reason=f"{attempt.zone} does not answer")
    if found is None:
        return _absent(attempt, context)
    if found.phase is Phase.REFUSED:
        return _refused(attempt, found, context)
    if attempt.releasing_at is not None or found.phase in {Phase.SUSPENDING, Phase.LEAVING}:
        return Classification(attempt=attempt, status=AttemptStatus.LEAVING, slice=found, reason=attempt.release_reason)
    match found.phase:
        case Phase.UP:
            return Classification(attempt=attempt, status=AttemptStatus.UP, slice=found)
        case Phase.LOST if attempt.granted_at is None:
            # Granted, but the node is not visible yet: late, not lost.
            return _waiting(attempt, found, context)
        case Phase.HUSK | Phase.LOST:
            return Classification(
                attempt=attempt,
                status=AttemptStatus.DEAD,
                slice=found,
                reason=f"{found.raw_state}: nothing runs there, but it uses quota",
                refusal=found.refusal or early_preemption(attempt, found, context.now),
            )
        case Phase.CREATING | Phase.QUEUED | Phase.PROVISIONING:
            return _waiting(attempt, found, context)


def _absent(attempt: Attempt, context: DecisionContext) -> Classification:
    """A 404. Final once the cloud has shown the name; before that only after the grace (late visibility)."""
    if attempt.is_listed or context.now >= attempt.asked_at + context.patience.grace:
        reason = "gone" if attempt.is_listed else "never appeared"
        return Classification(attempt=attempt, status=AttemptStatus.GONE, slice=None, reason=reason)
    return Classification(attempt=attempt, status=AttemptStatus.HIDDEN, slice=None, reason="asked; not visible yet")


def _refused(attempt: Attempt, found: Slice, context: DecisionContext) -> Classification:
    """The create operation failed, and nothing shows. Where it says no in words that are known, that is certain.

    Else the next place is asked at once, but this one is forgotten only after the grace: what failed in an unknown way
    may have made something that shows late.
    """
    first = attempt.releasing_at is None
    is_certain = first and found.refusal is not None and found.refusal.is_known
    if is_certain or attempt.is_listed or context.now >= attempt.asked_at + context.patience.grace:
        refusal = found.refusal if first else None
        return Classification(attempt=attempt, status=AttemptStatus.GONE, slice=found, reason=REFUSED, refusal=refusal)
    status = AttemptStatus.DEAD if first else AttemptStatus.REFUSED
    return Classification(
        attempt=attempt, status=status, slice=found, reason=REFUSED, refusal=found.refusal if first else None
    )


def _waiting(attempt: Attempt, found: Slice, context: DecisionContext) -> Classification:
    """A queued request keeps its place; yet no state may last for ever."""
    late = _overdue(attempt, found, context)
    if late is not None:
        return Classification(
            attempt=attempt, status=AttemptStatus.DEAD, slice=found, reason=late.message, refusal=late
        )
    return Classification(attempt=attempt, status=AttemptStatus.WAITING, slice=found, reason=found.raw_state)


def _overdue(attempt: Attempt, found: Slice, context: DecisionContext) -> Refusal | None:
    """Which deadline has passed: Google did not take the request, did not end it, or does not land it.

    PROVISIONING can loop for ever, and a node can go before it was seen.
    """
    patience = context.patience
    match found.phase:
        case Phase.CREATING:
            kind, since, most = "creating-stuck", attempt.asked_at, patience.creating
        case Phase.QUEUED if attempt.expires_at is not None:
            kind, since = "lapsed", attempt.asked_at
            most = attempt.expires_at - since + patience.lateness
        case Phase.QUEUED:
            return None
        case _:
            kind, since, most = "provisioning-stuck", attempt.provisioning_at or context.now, patience.provisioning
    waited = context.now - since
    if waited <= most:
        return None
    return Refusal(
        kind=kind,
        message=f"still {found.raw_state} after {round(waited / 60)} min",
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds_seconds=patience.provisioning if kind == "provisioning-stuck" else patience.lateness,
    )
