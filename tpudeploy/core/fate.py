"""What one attempt has come to, given one look: the first half of every decision.

           ┌── hidden    asked, not visible yet: it may still appear
attempt ───┼── waiting   alive: queued or provisioning
           ├── up        alive: a machine stands there
           ├── dead      still listed, useless: to be released
           ├── leaving   released, or going by itself: looked at until it is gone
           └── gone      certainly not there: to be forgotten
"""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Observed, Phase, Refusal, Remedy, Scope, Slice
from tpudeploy.domain.state import Attempt


class Fate(StrEnum):
    HIDDEN = "hidden"
    WAITING = "waiting"
    UP = "up"
    DEAD = "dead"
    LEAVING = "leaving"
    GONE = "gone"


@frozen
class Moment:
    """One look, and how long we are ready to wait."""

    observed: Observed
    patience: Patience

    @property
    def now(self) -> float:
        return self.observed.at


@frozen
class Judged:
    attempt: Attempt
    fate: Fate
    slice: Slice | None
    reason: str = ""
    refusal: Refusal | None = None


def judge(attempt: Attempt, moment: Moment) -> Judged:
    found = moment.observed.slices.get(attempt.name)
    if found is None:
        return _absent(attempt, moment)
    if found.phase is Phase.REFUSED:
        return Judged(attempt=attempt, fate=Fate.GONE, slice=found, reason="refused", refusal=found.refusal)
    if attempt.releasing_at is not None or found.phase is Phase.LEAVING:
        return Judged(attempt=attempt, fate=Fate.LEAVING, slice=found, reason=attempt.release_reason)
    match found.phase:
        case Phase.UP:
            return Judged(attempt=attempt, fate=Fate.UP, slice=found)
        case Phase.LOST if attempt.granted_at is None:
            # Granted, but the node is not visible yet: late, not lost.
            return _waiting(attempt, found, moment)
        case Phase.HUSK | Phase.LOST:
            return Judged(
                attempt=attempt,
                fate=Fate.DEAD,
                slice=found,
                reason=f"{found.raw_state}: nothing runs there, but it uses quota",
                refusal=found.refusal,
            )
        case Phase.QUEUED | Phase.PROVISIONING:
            return _waiting(attempt, found, moment)


def _absent(attempt: Attempt, moment: Moment) -> Judged:
    """A 404. Final once the cloud has shown the name; before that only after the grace (late visibility)."""
    if attempt.seen or moment.now >= attempt.asked_at + moment.patience.grace:
        reason = "gone" if attempt.seen else "never appeared"
        return Judged(attempt=attempt, fate=Fate.GONE, slice=None, reason=reason)
    return Judged(attempt=attempt, fate=Fate.HIDDEN, slice=None, reason="asked; not visible yet")


def _waiting(attempt: Attempt, found: Slice, moment: Moment) -> Judged:
    """PROVISIONING can loop for ever, and a node can go before it was seen: both get a land-or-abandon deadline.

    A queued request keeps its place.
    """
    since = attempt.provisioning_at
    if found.phase is not Phase.QUEUED and since is not None and moment.now - since > moment.patience.provisioning:
        minutes = round((moment.now - since) / 60)
        stuck = Refusal(
            kind="provisioning-stuck",
            message=f"still {found.raw_state} after {minutes} min",
            remedy=Remedy.NEXT_ZONE,
            scope=Scope.PAIR,
            holds_seconds=moment.patience.provisioning,
        )
        return Judged(attempt=attempt, fate=Fate.DEAD, slice=found, reason=stuck.message, refusal=stuck)
    return Judged(attempt=attempt, fate=Fate.WAITING, slice=found, reason=found.raw_state)
