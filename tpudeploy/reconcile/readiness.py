"""Which slices take requests: the list that clients and routers read, and who else serves while one is interrupted.

A slice is on the list from its first completion until something is about to happen to it. It drains from then on.

Why: decision 60 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tpudeploy.domain.slices import Observed, Phase
from tpudeploy.domain.state import Attempt, State


def takes_requests(attempt: Attempt, observed: Observed) -> bool:
    """Return whether clients are sent to a slice, as far as the state and the cloud show. Its server is not asked."""
    # It never answered, or it was taken off the list before something is done to it.
    if not attempt.is_announced or attempt.draining_at is not None or attempt.release is not None:
        return False
    current = observed.slices.get(attempt.name)
    # A slice that could not be observed was up when it was last seen: its zone may only be slow to answer.
    return attempt.name in observed.unseen or (current is not None and current.phase is Phase.UP)


def ready_slices(state: State, observed: Observed, leaving: Collection[str] = ()) -> Mapping[str, int]:
    """Return the slices that take requests, each with its replica, without those that are `leaving`."""
    listed = {
        attempt.name: record.index
        for record in state.records
        for attempt in record.attempts
        if attempt.name not in leaving and takes_requests(attempt, observed)
    }
    answers = {name: replica for name, replica in listed.items() if _answers(name, observed)}
    # Where no server answers, the network between here and them is more likely to have failed than all of them. Clients
    # may still reach them, so a failed probe takes none off the list. One that reports another start was not probed.
    return answers or {name: replica for name, replica in listed.items() if name in observed.health}


def _answers(name: str, observed: Observed) -> bool:
    health = observed.health.get(name)
    return name in observed.unseen or (health is not None and health.serving)
