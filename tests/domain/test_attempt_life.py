"""The life of an attempt, as its whole table: each state and each event, what follows, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from tpudeploy.domain.life import (
    STATES,
    TRANSITIONS,
    DeletionNamed,
    Detached,
    DrainBegan,
    DrainEnded,
    Draining,
    Event,
    IllegalTransition,
    Landing,
    Life,
    Listed,
    LossRecorded,
    Lost,
    MachineListed,
    Queued,
    Reclaimed,
    ReleaseBegan,
    ReleaseWithdrawn,
    Releasing,
    Requested,
    ServerAnswered,
    ServerStopped,
    Serving,
    SliceGranted,
    Starting,
    not_later_than,
    progress,
    transition,
)

STARTING = Starting(granted_at=20.0, provisioning_at=10.0)
SERVING = Serving(granted_at=20.0, provisioning_at=10.0)
DRAINING = Draining(granted_at=20.0, provisioning_at=10.0, draining_at=30.0)
DETACHED = Detached(granted_at=20.0, provisioning_at=10.0, draining_at=30.0)
RELEASING = Releasing(before=SERVING, releasing_at=40.0, reason="spare", is_spare=True, deletion="first")
RECLAIMED = Reclaimed(before=SERVING, deletion="first")
SAMPLES: tuple[Life, ...] = (
    Requested(),
    Queued(),
    Landing(provisioning_at=10.0),
    STARTING,
    SERVING,
    DRAINING,
    DETACHED,
    Lost(before=SERVING),
    RECLAIMED,
    RELEASING,
)
RELEASE = ReleaseBegan(releasing_at=50.0, reason="no longer wanted")
HAPPENINGS: tuple[Event, ...] = (
    Listed(),
    MachineListed(provisioning_at=11.0),
    SliceGranted(granted_at=21.0),
    ServerAnswered(),
    ServerStopped(),
    DrainBegan(draining_at=31.0),
    DrainEnded(),
    LossRecorded(),
    RELEASE,
    DeletionNamed(deletion="second"),
    ReleaseWithdrawn(),
)


def released(before: Life, deletion: str | None = None) -> Life:
    assert not isinstance(before, Releasing)
    return Releasing(before=before, releasing_at=50.0, reason="no longer wanted", deletion=deletion)


# Every pair that is not here is refused.
FOLLOWS: dict[tuple[Life, Event], Life] = {
    (Requested(), Listed()): Queued(),
    (Requested(), MachineListed(provisioning_at=11.0)): Landing(provisioning_at=11.0),
    (Requested(), SliceGranted(granted_at=21.0)): Starting(granted_at=21.0),
    (Queued(), Listed()): Queued(),
    (Queued(), MachineListed(provisioning_at=11.0)): Landing(provisioning_at=11.0),
    (Queued(), SliceGranted(granted_at=21.0)): Starting(granted_at=21.0),
    (Landing(provisioning_at=10.0), Listed()): Landing(provisioning_at=10.0),
    (Landing(provisioning_at=10.0), MachineListed(provisioning_at=11.0)): Landing(provisioning_at=10.0),
    (Landing(provisioning_at=10.0), SliceGranted(granted_at=21.0)): Starting(granted_at=21.0, provisioning_at=10.0),
    **{
        (state, event): state
        for state in (STARTING, SERVING, DRAINING, DETACHED, Lost(before=SERVING), RECLAIMED, RELEASING)
        for event in HAPPENINGS[:3]
    },
    **{(state, ServerAnswered()): state for state in (SERVING, DRAINING, Lost(before=SERVING), RECLAIMED, RELEASING)},
    (STARTING, ServerAnswered()): SERVING,
    (DETACHED, ServerAnswered()): DRAINING,
    (STARTING, ServerStopped()): STARTING,
    (SERVING, ServerStopped()): STARTING,
    (DRAINING, ServerStopped()): DETACHED,
    (DETACHED, ServerStopped()): DETACHED,
    (Lost(before=SERVING), ServerStopped()): Lost(before=STARTING),
    (RECLAIMED, ServerStopped()): Reclaimed(before=STARTING, deletion="first"),
    (RELEASING, ServerStopped()): Releasing(
        before=STARTING, releasing_at=40.0, reason="spare", is_spare=True, deletion="first"
    ),
    (SERVING, DrainBegan(draining_at=31.0)): Draining(granted_at=20.0, provisioning_at=10.0, draining_at=31.0),
    (Lost(before=SERVING), DrainBegan(draining_at=31.0)): Lost(
        before=Draining(granted_at=20.0, provisioning_at=10.0, draining_at=31.0)
    ),
    (RECLAIMED, DrainBegan(draining_at=31.0)): Reclaimed(
        before=Draining(granted_at=20.0, provisioning_at=10.0, draining_at=31.0), deletion="first"
    ),
    (RELEASING, DrainBegan(draining_at=31.0)): Releasing(
        before=Draining(granted_at=20.0, provisioning_at=10.0, draining_at=31.0),
        releasing_at=40.0,
        reason="spare",
        is_spare=True,
        deletion="first",
    ),
    (DRAINING, DrainEnded()): SERVING,
    (DETACHED, DrainEnded()): STARTING,
    **{(state, LossRecorded()): Lost(before=state) for state in (STARTING, SERVING, DRAINING, DETACHED)},
    (RECLAIMED, LossRecorded()): Reclaimed(before=Lost(before=SERVING), deletion="first"),
    **{(state, RELEASE): released(state) for state in SAMPLES[:-1]},
    (RELEASING, RELEASE): released(SERVING, deletion="first"),
    (RELEASING, DeletionNamed(deletion="second")): Releasing(
        before=SERVING, releasing_at=40.0, reason="spare", is_spare=True, deletion="second"
    ),
    (RELEASING, ReleaseWithdrawn()): RECLAIMED,
}


def test_the_table_is_whole() -> None:
    assert set(TRANSITIONS) == set(STATES) == {type(each) for each in SAMPLES}
    assert set(get_args(Event)) == {type(each) for each in HAPPENINGS}


@pytest.mark.parametrize(
    ("life", "event"), list(product(SAMPLES, HAPPENINGS)), ids=lambda each: type(each).__name__.lower()
)
def test_each_event_in_each_state(life: Life, event: Event) -> None:
    if (life, event) in FOLLOWS:
        assert transition(life, event) == FOLLOWS[life, event]
    else:
        with pytest.raises(IllegalTransition, match=f"^{type(event).__name__} in the state "):
            transition(life, event)


def test_an_event_that_is_refused_is_named_with_the_state() -> None:
    with pytest.raises(IllegalTransition, match=r"^DrainBegan in the state Starting$"):
        transition(STARTING, DrainBegan(draining_at=31.0))


def test_what_brings_nothing_new_changes_nothing() -> None:
    assert transition(SERVING, Listed()) is SERVING


@pytest.mark.parametrize(("deletion", "pending"), [(None, "first"), ("second", "second")])
def test_a_slice_that_is_reclaimed_again_knows_the_last_deletion_with_a_name(
    deletion: str | None, pending: str
) -> None:
    life = transition(RECLAIMED, RELEASE)
    if deletion is not None:
        life = transition(life, DeletionNamed(deletion=deletion))
    assert transition(life, ReleaseWithdrawn()) == Reclaimed(before=SERVING, deletion=pending)


def test_progress_looks_through_a_loss_a_reclaim_and_a_release() -> None:
    assert progress(transition(Reclaimed(before=Lost(before=DRAINING)), RELEASE)) is DRAINING


@pytest.mark.parametrize(
    ("life", "now", "expected"),
    [
        (Requested(), 5.0, Requested()),
        (DRAINING, 30.0, DRAINING),
        (DRAINING, 15.0, Draining(granted_at=15.0, provisioning_at=10.0, draining_at=15.0)),
        (RELEASING, 40.0, RELEASING),
        (
            RELEASING,
            15.0,
            Releasing(
                before=Serving(granted_at=15.0, provisioning_at=10.0),
                releasing_at=15.0,
                reason="spare",
                is_spare=True,
                deletion="first",
            ),
        ),
    ],
)
def test_where_the_clock_went_back_no_time_is_in_the_future(life: Life, now: float, expected: Life) -> None:
    assert not_later_than(life, now) == expected


@pytest.mark.parametrize(("life", "now"), [(DRAINING, 30.0), (RELEASING, 40.0)])
def test_a_time_that_is_now_is_not_in_the_future(life: Life, now: float) -> None:
    assert not_later_than(life, now) is life
