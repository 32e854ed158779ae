"""Classify one attempt by one observation: the first half of every decision to reconcile.

           ┌── hidden    requested, not visible yet: it may still appear
           ├── refused   its create operation failed after its release: it may still appear
attempt ───┼── waiting   alive: queued or provisioning
           ├── up        alive: a machine runs
           ├── dead      still listed, useless: to be released
           ├── leaving   released, or ended by Google: observed until it is gone
           └── gone      certainly absent: to be forgotten

Why: decisions 20 and 24 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Area, Place
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Absence, Observed, Phase, Refusal, RefusalScope, Remedy, Slice
from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile.failed_landings import early_preemption
from tpudeploy.reconcile.refusals import UNANSWERED

# Seconds. The longest notice of a preemption lasts 120 s; what is up after this time was not taken back.
_NOTICE = 300.0


class AttemptStatus(StrEnum):
    HIDDEN = "hidden"
    REFUSED = "refused"
    WAITING = "waiting"
    UP = "up"
    DEAD = "dead"
    LEAVING = "leaving"
    GONE = "gone"


BILLED = frozenset({AttemptStatus.UP, AttemptStatus.LEAVING})  # nothing is billed before the grant


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """Everything that a decision depends on beside the profile and the record: one observation, and what is allowed.

    `creates` is the number of creates that the project has left at each API, and `creates_in` the seconds until it has
    one more there; an API that is not in them has no limit.
    `scores` are the capacity scores of places, and `resting` the zones that answer slowly, with the moment until which
    nothing is requested there (epoch seconds). `may_reset`: a node that does not pick up a change may be rebooted.
    `may_request`: a slice may be requested, also beside one that is up. `renews`: a successor may be requested for a
    run that ends, although no plan showed it. `acquisition` is the longest recent wait for a grant, in seconds.
    `others_serve`: another replica takes requests. `held_because`: why the server of this replica may not be
    interrupted now; "" if it may.
    """

    observed: Observed
    patience: Patience
    creates: Mapping[Backend, int] = field(default_factory=dict)
    creates_in: Mapping[Backend, float] = field(default_factory=dict)
    scores: Mapping[Place, float] = field(default_factory=dict)
    resting: Mapping[Area, float] = field(default_factory=dict)
    may_reset: bool = False
    may_request: bool = True
    renews: bool = False
    acquisition: float = 0.0
    others_serve: bool = False
    held_because: str = ""

    @property
    def now(self) -> float:
        return self.observed.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """An attempt with its status. `slice` is what the cloud shows of it, and `reason` is for display.

    `absence` is why it has no slice, None where it may have one.
    `refusal` is what its end says about its place, for the next choice.
    """

    attempt: Attempt
    status: AttemptStatus
    slice: Slice | None
    reason: str = ""
    refusal: Refusal | None = None
    absence: Absence | None = None


def classify(attempt: Attempt, context: DecisionContext) -> Classification:
    """Return the status of an attempt after an observation."""
    if attempt.name in context.observed.unseen:
        # A zone that does not answer hides only itself: its requests keep their place, and nothing is concluded.
        # A granted slice is never among them: `engine.observe` raises the fault instead.
        status = AttemptStatus.WAITING if attempt.release is None else AttemptStatus.LEAVING
        is_resting = (attempt.zone, attempt.backend) in context.resting
        reason = f"{attempt.zone} {'answers slowly' if is_resting else 'does not answer'}"
        return Classification(attempt=attempt, status=status, slice=None, reason=reason)
    current = context.observed.slices.get(attempt.name)
    if current is None:
        return _classify_absent(attempt, context)
    if current.phase is Phase.REFUSED:
        return _classify_refused(attempt, current, context)
    unseen = _classify_unseen(attempt, current, context)
    return _classify_by_phase(attempt, current, context) if unseen is None else unseen


def _classify_by_phase(attempt: Attempt, current: Slice, context: DecisionContext) -> Classification:
    """Return the status of a slice that the cloud shows."""
    if attempt.release is not None or current.phase in {Phase.SUSPENDING, Phase.LEAVING}:
        # It may be billed until it is gone, whatever the cloud shows of it until then.
        reason = attempt.release_reason
        return Classification(attempt=attempt, status=AttemptStatus.LEAVING, slice=current, reason=reason)
    match current.phase:
        case Phase.UP:
            return _classify_up(attempt, current, context)
        case Phase.LOST if attempt.granted_at is None:
            # The request is granted and its node is not listed yet: it is late, not lost.
            return _classify_waiting(attempt, current, context)
        case Phase.HUSK | Phase.LOST:
            # Google's own reason comes first. Without one, an early preemption is held against the place.
            return Classification(
                attempt=attempt,
                status=AttemptStatus.DEAD,
                slice=current,
                reason=f"{current.raw_state}: {_loss_words(current)}",
                refusal=current.refusal or early_preemption(attempt, context.now),
            )
        case Phase.CREATING | Phase.QUEUED | Phase.PROVISIONING | Phase.REFUSED:
            return _classify_waiting(attempt, current, context)


def _loss_words(current: Slice) -> str:
    """Return what is known of the machines of a slice that is no use: some of several may still run."""
    if current.machines_running:
        return "the slice needs all of them, and those that run are billed until it is deleted"
    return "nothing runs there, but it uses quota"


def _classify_up(attempt: Attempt, current: Slice, context: DecisionContext) -> Classification:
    """Return the status of a slice whose machine runs."""
    if is_being_preempted(attempt.name, context.observed):
        # It answers for some seconds, and its successor is requested now, as for one that is gone.
        current = replace(current, raw_state=f"{current.raw_state}, being preempted")
        reason = "Google is preempting it"
        return Classification(attempt=attempt, status=AttemptStatus.LEAVING, slice=current, reason=reason)
    return Classification(attempt=attempt, status=AttemptStatus.UP, slice=current)


def is_being_preempted(name: str, observed: Observed) -> bool:
    """Return whether the machine of a slice reports that Google is taking it back."""
    report = observed.reports.get(name)
    if report is None or report.preempted_at is None:
        return False
    return observed.at - report.preempted_at < _NOTICE


def _without_slice(
    attempt: Attempt, status: AttemptStatus, absence: Absence, current: Slice | None, refusal: Refusal | None
) -> Classification:
    return Classification(
        attempt=attempt, status=status, slice=current, reason=absence, refusal=refusal, absence=absence
    )


def _classify_absent(attempt: Attempt, context: DecisionContext) -> Classification:
    """Return the status after a 404."""
    if attempt.is_listed:
        # Google shows a name until its slice is deleted, so a name that disappears does not come back.
        refusal = _lapse(attempt, context) or _loss(attempt, context)
        return _without_slice(attempt, AttemptStatus.GONE, Absence.GONE, None, refusal)
    if context.now >= hidden_until(attempt, None, context):
        # Its reply was lost or an error of Google's, or a run was killed before it was sent: nothing was created.
        refusal = _unanswered(attempt, context)
        return _without_slice(attempt, AttemptStatus.GONE, Absence.NEVER_APPEARED, None, refusal)
    # A new request can be missing from a list for a while. To forget it now could leave a slice without a state.
    return Classification(attempt=attempt, status=AttemptStatus.HIDDEN, slice=None, reason="requested; not visible yet")


def _classify_unseen(attempt: Attempt, current: Slice, context: DecisionContext) -> Classification | None:
    """Return the status of a request of which only the create operation is there, which is no sighting (decision 83).

    Return None for a slice that the cloud shows, and for the remains of a group, which are released.
    """
    if current.operation is None:
        return None
    until = _operation_until(attempt, current, context)
    if context.now >= until:
        if current.phase is Phase.HUSK:
            return None
        # It ended without a slice, or it never ends: the slice was released, and nothing of it appeared since.
        refusal = None if attempt.release is not None else _lapse(attempt, context) or _unanswered(attempt, context)
        return _without_slice(attempt, AttemptStatus.GONE, Absence.NEVER_APPEARED, current, refusal)
    if attempt.release is not None:
        # Its deletion finds nothing before it appears, so it is sent again until then.
        reason = attempt.release_reason
        return Classification(attempt=attempt, status=AttemptStatus.LEAVING, slice=current, reason=reason)
    if _ended_at(current) is None:
        return _classify_waiting(attempt, current, context)
    reason = f"{current.raw_state}; not visible yet"
    return Classification(attempt=attempt, status=AttemptStatus.HIDDEN, slice=current, reason=reason)


def _operation_until(attempt: Attempt, current: Slice, context: DecisionContext) -> float:
    """Return when a slice that only its create operation shows will not appear any more.

    An open operation ends by itself. One that does not is over once its request was released, and cannot be granted any
    more.
    """
    if _ended_at(current) is not None:
        return hidden_until(attempt, current, context)
    if attempt.release is None:
        # Its deadline releases it first.
        return inf
    patience = context.patience
    limit = attempt.asked_at + patience.creating
    if current.phase is Phase.QUEUED and attempt.expires_at is not None:
        limit = attempt.expires_at
    return limit + patience.lateness + patience.grace


def hidden_until(attempt: Attempt, current: Slice | None, context: DecisionContext) -> float:
    """Return when a request that the cloud does not show yet will not appear any more.

    Its slice can appear some time after the request, or after the end of its create operation.
    """
    return max(attempt.asked_at, _ended_at(current) or 0.0) + context.patience.grace


def _ended_at(current: Slice | None) -> float | None:
    return None if current is None or current.operation is None else current.operation.ended_at


def _unanswered(attempt: Attempt, context: DecisionContext) -> Refusal | None:
    """Return the refusal of a request that led to nothing, so that other places are asked before this one again."""
    if attempt.release is not None:
        # It was given up before it could appear, which says nothing about its place.
        return None
    return Refusal(
        kind=UNANSWERED,
        message=f"no slice appeared in the {context.patience.grace / 60:.0f} min after the request",
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds_seconds=context.patience.grace,
    )


def _lapse(attempt: Attempt, context: DecisionContext) -> Refusal | None:
    """Return the refusal of an instance that waited for its whole time, which Compute Engine drops without a word.

    Queued resources stay in a state that says so.
    """
    is_waiting = attempt.granted_at is None and attempt.releasing_at is None
    if BACKENDS[attempt.backend].has_end_states or not is_waiting or attempt.provisioning_at is not None:
        # It was granted, released or about to land: its absence has another cause.
        return None
    if attempt.expires_at is None or context.now < attempt.expires_at:
        # It still had time to wait, so somebody deleted it.
        return None
    waited = round((attempt.expires_at - attempt.asked_at) / 60)
    return Refusal(
        kind="lapsed",
        message=f"not granted in the {waited} min that the request could wait",
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds_seconds=context.patience.lateness,
    )


def _loss(attempt: Attempt, context: DecisionContext) -> Refusal | None:
    """Return the refusal of an instance that was preempted soon, which Compute Engine deletes without a word.

    Queued resources stay in a state that says so.
    """
    if BACKENDS[attempt.backend].has_end_states:
        # Somebody deleted the queued resource, which says nothing about its place.
        return None
    return early_preemption(attempt, context.now)


def _classify_refused(attempt: Attempt, current: Slice, context: DecisionContext) -> Classification:
    """Return the status after a create operation that failed, while the cloud shows no slice (decision 20)."""
    is_kept = attempt.release is None
    # After the release it is no news: the refusal is in the record already.
    refusal = current.refusal if is_kept else None
    is_certain = refusal is not None and refusal.is_known
    if is_certain or attempt.is_listed or context.now >= hidden_until(attempt, current, context):
        # A known refusal creates nothing, and what was listed once and is not now is gone.
        status = AttemptStatus.GONE
    elif is_kept:
        # What failed for an unknown reason may have created a slice that appears late. The next place is requested at
        # once, but this name stays in the state until the grace is over.
        status = AttemptStatus.DEAD
    else:
        status = AttemptStatus.REFUSED
    return _without_slice(attempt, status, Absence.REFUSED, current, refusal)


def _classify_waiting(attempt: Attempt, current: Slice, context: DecisionContext) -> Classification:
    """Return the status of a request in a queue or on its way: it keeps its place until a deadline passes."""
    refusal = _overdue(attempt, current, context)
    if refusal is not None:
        return Classification(
            attempt=attempt, status=AttemptStatus.DEAD, slice=current, reason=refusal.message, refusal=refusal
        )
    return Classification(attempt=attempt, status=AttemptStatus.WAITING, slice=current, reason=current.raw_state)


def _overdue(attempt: Attempt, current: Slice, context: DecisionContext) -> Refusal | None:
    """Return what a request that has passed its deadline says against its place, or None for one in time."""
    patience = context.patience
    hold = patience.lateness
    match current.phase:
        case Phase.CREATING:
            # Google did not take the request into its queue.
            kind, since, limit = "creating-stuck", attempt.asked_at, patience.creating
        case Phase.QUEUED if attempt.expires_at is not None:
            # Google did not end the request at its own end.
            kind, since = "lapsed", attempt.asked_at
            limit = attempt.expires_at - since + patience.lateness
        case Phase.QUEUED:
            # A state of an earlier version does not say when the request ends. Google ends it.
            return None
        case _:
            # PROVISIONING can loop for ever, and a node can be lost before it is observed. The place is avoided for as
            # long as this one was waited for.
            kind, since, limit = "provisioning-stuck", attempt.provisioning_at or context.now, patience.provisioning
            hold = patience.provisioning
    waited = context.now - since
    if waited <= limit:
        return None
    return Refusal(
        kind=kind,
        message=f"still {current.raw_state} after {round(waited / 60)} min",
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds_seconds=hold,
    )
