"""What a grant that did not last counts for: holds that grow, what is forgotten, what others saw. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    INSTANCES,
    MINUTE,
    NOW,
    PATIENCE,
    SPOT,
    A,
    B,
    C,
    attempt,
    candidate,
    failed_landing,
    granted,
    record,
    refused,
)

from tpudeploy.domain.deployment import Place
from tpudeploy.domain.slices import Refusal, RefusalScope, Remedy
from tpudeploy.domain.state import Attempt, RefusalRecord
from tpudeploy.reconcile.failed_landings import (
    HOST_FAULT,
    LASTING,
    PREEMPTED,
    add_failed_landings,
    doubtful_places,
    drop_forgiven_landings,
    early_preemption,
    effective_refusals,
    hold_seconds,
    makes_doubtful,
)


@pytest.mark.parametrize(
    ("kind", "times", "hours"),
    [
        pytest.param(PREEMPTED, 1, 2, id="a preemption: two hours"),
        pytest.param(PREEMPTED, 2, 4, id="the second in a row: four hours"),
        pytest.param(PREEMPTED, 9, 24, id="at most a day"),
        pytest.param("internal-error", 1, 1 / 6, id="nothing came up: ten minutes"),
        pytest.param("internal-error", 2, 1 / 3, id="nothing came up twice: twenty minutes"),
        pytest.param("internal-error", 99, 24, id="nothing ever came up: at most a day"),
    ],
)
def test_each_failure_in_a_row_is_held_against_its_place_for_twice_as_long(kind: str, times: int, hours: float) -> None:
    assert hold_seconds(kind, times) == hours * HOUR


@pytest.mark.parametrize(
    ("one", "text"),
    [
        pytest.param(granted(), "5 min", id="spot, soon after the grant"),
        pytest.param(granted(minutes_ago=59 / 60), "59 s", id="within the first minute"),
        pytest.param(granted(minutes_ago=1), "1 min", id="after a minute"),
        pytest.param(granted(granted_at=None), "5 min", id="while Google made it"),
        pytest.param(granted(minutes_ago=5, provisioning_at=NOW - HOUR), "5 min", id="counted from the grant"),
        pytest.param(granted(minutes_ago=29.9), "30 min", id="just before it had lasted"),
        pytest.param(granted(minutes_ago=30), None, id="it had lasted"),
        pytest.param(attempt(), None, id="it was never granted"),
        pytest.param(granted(model=FLEX), None, id="flex-start is not preempted"),
        pytest.param(granted(releasing_at=NOW), None, id="it was given up here"),
    ],
)
def test_what_a_preemption_says_against_its_place(one: Attempt, text: str | None) -> None:
    expected = (
        None
        if text is None
        else Refusal(
            kind="preempted",
            message=f"Google took {one.name} back {text} after the grant.",
            remedy=Remedy.NEXT_ZONE,
            scope=RefusalScope.PAIR,
            holds_seconds=2 * HOUR,
        )
    )
    assert early_preemption(one, NOW) == expected


@pytest.mark.parametrize(
    ("row", "is_doubtful"),
    [
        pytest.param(failed_landing(minutes_ago=10), True, id="while it is held against its place"),
        pytest.param(failed_landing(minutes_ago=239), True, id="and for as long again"),
        pytest.param(failed_landing(minutes_ago=240), False, id="not longer"),
        pytest.param(refused(A, 10, lasts=110), False, id="a refusal makes no place doubtful"),
    ],
)
def test_a_failure_is_forgotten_after_twice_its_hold(row: RefusalRecord, is_doubtful: bool) -> None:
    assert makes_doubtful(row, NOW) is is_doubtful
    assert doubtful_places(record(refusals=[row]), NOW) == ({Place(A, SPOT)} if is_doubtful else set())


@pytest.mark.parametrize(
    ("one", "zones"),
    [
        pytest.param(granted(minutes_ago=29.9), [A, B], id="not while it has yet to last"),
        pytest.param(granted(minutes_ago=30), [B], id="once a slice has lasted there"),
        pytest.param(granted(B, minutes_ago=30), [A], id="there, and nowhere else"),
        pytest.param(attempt(provisioning_at=NOW - HOUR), [A, B], id="not for a slice that was never granted"),
    ],
)
def test_a_failure_is_forgiven(one: Attempt, zones: list[str]) -> None:
    rows = drop_forgiven_landings((failed_landing(A), failed_landing(B)), [one], NOW)
    assert [r.zone for r in rows] == zones


def test_a_refusal_is_not_forgiven() -> None:
    assert drop_forgiven_landings([refused(A)], [granted(minutes_ago=60)], NOW) == (refused(A),)
    assert LASTING == 30 * MINUTE


@pytest.mark.parametrize(
    ("others", "minutes"),
    [
        pytest.param([], 120, id="another place can be hoped for"),
        pytest.param([refused(B, lasts=1)], 120, id="another place is full for a minute"),
        pytest.param([refused(B, lasts=120)], 120, id="another place is refused for two hours"),
        pytest.param([refused(B, lasts=121)], 1, id="the other place waits for a person"),
        pytest.param([failed_landing(B, minutes_ago=0, held_for=121)], 1, id="the other place is doubtful as well"),
    ],
)
def test_how_long_a_failed_landing_is_held_against_its_place(others: Sequence[RefusalRecord], minutes: float) -> None:
    state = record(refusals=[failed_landing(minutes_ago=0), *others])
    rows = effective_refusals([candidate(A), candidate(B)], state, NOW, PATIENCE)
    assert rows[0].until - NOW == minutes * MINUTE
    assert [r for r in rows if not r.landed] == [r for r in others if not r.landed]


@pytest.mark.parametrize(
    ("kind", "other", "minutes"),
    [
        pytest.param("internal-error", refused(B, minutes_ago=4), 1, id="the other place is full: only time is lost"),
        pytest.param("internal-error", refused(B, minutes_ago=5), 120, id="it was full five minutes ago"),
        pytest.param("internal-error", refused(C, minutes_ago=1), 120, id="no answer of the other place"),
        pytest.param(
            "internal-error", refused(B, 1, scope=RefusalScope.REGION_QUOTA), 120, id="it has no quota: no look at it"
        ),
        pytest.param(PREEMPTED, refused(B, minutes_ago=1), 120, id="chips that were billed are not risked again"),
        pytest.param(HOST_FAULT, refused(B, minutes_ago=1), 120, id="nor on a machine that had a fault"),
    ],
)
def test_while_every_other_place_is_full_a_failure_that_cost_only_time_is_tried_again_soon(
    kind: str, other: RefusalRecord, minutes: float
) -> None:
    state = record(refusals=[replace(failed_landing(minutes_ago=0), kind=kind), other])
    rows = effective_refusals([candidate(A), candidate(B)], state, NOW, PATIENCE)
    assert rows[0].until - NOW == minutes * MINUTE


@pytest.mark.parametrize(
    ("other", "minutes"),
    [
        pytest.param(refused(A, lasts=1, backend=INSTANCES), 120, id="it has other places"),
        pytest.param(refused(A, lasts=1, stops=True, backend=INSTANCES), 1, id="it waits for a person"),
        pytest.param(refused(A, lasts=0, stops=True, backend=INSTANCES), 120, id="it did so earlier"),
    ],
)
def test_what_can_be_hoped_for_at_the_other_api(other: RefusalRecord, minutes: float) -> None:
    state = record(refusals=[failed_landing(minutes_ago=0), other])
    rows = effective_refusals([candidate(A), candidate(B, backend=INSTANCES)], state, NOW, PATIENCE)
    assert rows[0].until - NOW == minutes * MINUTE


@pytest.mark.parametrize(
    ("times", "held_for", "minutes"),
    [
        pytest.param(1, 120, 1, id="the first: a minute"),
        pytest.param(2, 120, 2, id="the second in a row: two minutes"),
        pytest.param(4, 120, 8, id="the fourth in a row: eight minutes"),
        pytest.param(99, 120, 120, id="never longer than elsewhere"),
        pytest.param(99, 10**9, 2**20, id="and bounded"),
    ],
)
def test_where_there_is_no_other_place_a_failed_landing_is_waited_out_like_a_full_place(
    times: int, held_for: float, minutes: float
) -> None:
    row = failed_landing(minutes_ago=0, held_for=held_for, times=times)
    assert [r.until - NOW for r in effective_refusals([candidate()], record(refusals=[row]), NOW, PATIENCE)] == [
        minutes * MINUTE
    ]


def test_what_a_record_knows_of_a_place_itself_is_not_replaced_by_what_others_saw() -> None:
    own = failed_landing(A, held_for=240, times=2)
    others = (failed_landing(A, minutes_ago=1), failed_landing(B, minutes_ago=1))
    state = add_failed_landings(record(refusals=[own]), others, NOW)
    assert state.refusals == (own, others[1])
    assert add_failed_landings(state, others, NOW) is state


@pytest.mark.parametrize(
    ("own", "is_added"),
    [
        pytest.param(failed_landing(A, minutes_ago=300), False, id="a failed landing that is forgotten is replaced"),
        pytest.param(refused(A, 300), True, id="a refusal of that place stays"),
        pytest.param(failed_landing(C, minutes_ago=300), True, id="what is known of other places stays"),
    ],
)
def test_what_others_saw_is_added(own: RefusalRecord, is_added: bool) -> None:
    landing = failed_landing(A, minutes_ago=1)
    assert add_failed_landings(record(refusals=[own]), [landing], NOW).refusals == (
        (own, landing) if is_added else (landing,)
    )


@pytest.mark.parametrize(
    ("landing", "one"),
    [
        pytest.param(failed_landing(A, minutes_ago=241), attempt(), id="it is forgotten by now"),
        pytest.param(failed_landing(A), granted(minutes_ago=30), id="a slice of ours has lasted there since"),
    ],
)
def test_what_others_saw_long_ago_counts_for_nothing(landing: RefusalRecord, one: Attempt) -> None:
    state = record(one)
    assert add_failed_landings(state, [landing], NOW) is state
