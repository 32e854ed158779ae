"""The world as a state remembers it, for who plans without a look at it. Nothing is done by it: apply looks."""

from __future__ import annotations

from tpudeploy.domain.slices import Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.node.node_facts import SPEC_KEY

_RAW = "not looked at"


def cached_observation(state: State, now: float) -> Observed:
    """Every slice is where it was when it was last seen."""
    return Observed(at=now, slices={a.name: _slice(a) for a in state.attempts})


def _slice(attempt: Attempt) -> Slice:
    return Slice(
        name=attempt.name,
        zone=attempt.zone,
        phase=_phase(attempt),
        raw_state=_RAW,
        provisioning=attempt.provisioning,
        metadata={SPEC_KEY: attempt.metadata_server},
    )


def _phase(attempt: Attempt) -> Phase:
    if attempt.releasing_at is not None:
        return Phase.LEAVING
    return Phase.QUEUED if attempt.granted_at is None else Phase.UP
