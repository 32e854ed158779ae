"""What the results of earlier requests say about a place: scores, failed landings, and the figures for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
from reconcile.cases import FLEX, HOUR, MINUTE, NOW, SPOT, A, B, C, candidate, deployment, entry

from tpudeploy.domain.availability import Luck
from tpudeploy.domain.deployment import Place
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import RefusalRecord
from tpudeploy.reconcile.capacity_score import (
    capacity_score,
    capacity_scores,
    doubtful_places_of_history,
    failed_landings,
    longest_recent_wait,
    preference,
    summarize_results,
)

GRANTED, REFUSED, LAPSED = Ending.GRANTED, Ending.REFUSED, Ending.LAPSED
RELEASED, STUCK, PREEMPTED = Ending.RELEASED, Ending.STUCK, Ending.PREEMPTED


@pytest.mark.parametrize(
    ("entries", "score"),
    [
        pytest.param([], 0.0, id="nothing was requested there"),
        pytest.param([entry(GRANTED, minutes_ago=0)], 1.0, id="a grant just now"),
        pytest.param([entry(GRANTED, minutes_ago=360)], 0.5, id="half of it after six hours"),
        pytest.param([entry(GRANTED, minutes_ago=720)], 0.25, id="a quarter after twelve"),
        pytest.param([entry(GRANTED, minutes_ago=-9)], 1.0, id="a clock that is ahead adds nothing"),
        pytest.param([entry(REFUSED, minutes_ago=0)], -0.1, id="a refusal"),
        pytest.param([entry(LAPSED, minutes_ago=0)], -0.5, id="a request that lapsed"),
        pytest.param([entry(STUCK, minutes_ago=0)], -0.5, id="a slice that never came up"),
        pytest.param([entry(PREEMPTED, minutes_ago=0)], -1.5, id="a preemption, after the grant that it was before"),
        pytest.param([entry(RELEASED, minutes_ago=0)], 0.0, id="what we released ourselves says nothing"),
        pytest.param([entry(GRANTED, minutes_ago=0), entry(REFUSED, minutes_ago=360)], 0.95, id="the sum of all"),
    ],
)
def test_the_score_of_a_place(entries: list[HistoryEntry], score: float) -> None:
    assert capacity_score(iter(entries), NOW) == pytest.approx(score)


def test_each_place_has_a_score_of_its_own_for_each_type() -> None:
    history = [
        entry(GRANTED, minutes_ago=0),
        entry(REFUSED, minutes_ago=0),
        entry(GRANTED, minutes_ago=0, provisioning=FLEX),
        entry(LAPSED, minutes_ago=0, zone=B),
        entry(GRANTED, minutes_ago=0, zone=C, type="v6e-1"),
    ]
    assert capacity_scores(history, "v6e-8", NOW) == {Place(A, SPOT): 0.9, Place(A, FLEX): 1.0, Place(B, SPOT): -0.5}
    assert not capacity_scores(history, "v5e-8", NOW)


@pytest.mark.parametrize(
    ("history", "times"),
    [
        pytest.param([], None, id="nothing was requested there"),
        pytest.param([entry(REFUSED, minutes_ago=60)], None, id="a refusal is no failed landing"),
        pytest.param([entry(PREEMPTED, minutes_ago=60)], 1, id="a preemption is one"),
        pytest.param([entry(STUCK, minutes_ago=60)], 1, id="a slice that never came up is one"),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=120), entry(PREEMPTED, minutes_ago=60)], 2, id="the second of two in a row"
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=120), entry(PREEMPTED, minutes_ago=60, waited=HOUR)],
            2,
            id="requested just as the first one failed",
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=120), entry(PREEMPTED, minutes_ago=60, waited=HOUR + 1)],
            1,
            id="requested before the first one failed: both were taken back together",
        ),
        pytest.param(
            [
                entry(PREEMPTED, minutes_ago=180),
                entry(PREEMPTED, minutes_ago=120),
                entry(PREEMPTED, minutes_ago=60, waited=2 * HOUR),
            ],
            2,
            id="what fails together with the second one does not count as a third",
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=480), entry(PREEMPTED, minutes_ago=60)],
            1,
            id="the first one is forgotten after twice its hold of two hours",
        ),
        pytest.param(
            [entry(STUCK, minutes_ago=120, kind="internal-error"), entry(PREEMPTED, minutes_ago=60)],
            1,
            id="the first one is forgotten after twice its hold of ten minutes",
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=120), entry(REFUSED, minutes_ago=90), entry(PREEMPTED, minutes_ago=60)],
            2,
            id="a refusal in between changes nothing",
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=540), entry(GRANTED, minutes_ago=60)],
            None,
            id="a grant that has lasted outweighs it",
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=540), entry(GRANTED, minutes_ago=30)],
            None,
            id="it has lasted after half an hour",
        ),
        pytest.param(
            [entry(PREEMPTED, minutes_ago=540), entry(GRANTED, minutes_ago=29.9)],
            1,
            id="a grant of a moment ago does not",
        ),
    ],
)
def test_what_the_history_holds_against_a_place(history: list[HistoryEntry], times: int | None) -> None:
    refusals = [
        entry(e.outcome, minutes_ago=(NOW - e.at) / MINUTE, waited=e.waited, kind=e.kind or "preempted")
        for e in history
    ]
    assert [r.times for r in failed_landings(refusals, "v6e-8", NOW)] == ([] if times is None else [times])
    assert not failed_landings(refusals, "v6e-1", NOW)


def test_a_place_whose_results_balance_is_not_held_back() -> None:
    history = [entry(STUCK, minutes_ago=60), entry(STUCK, minutes_ago=60), entry(GRANTED, minutes_ago=60)]
    assert not failed_landings(history, "v6e-8", NOW)
    assert failed_landings(history[:1], "v6e-8", NOW)


def test_what_is_known_of_a_failed_landing_and_the_order_of_the_places() -> None:
    history = [
        entry(REFUSED, minutes_ago=90, zone=B),
        entry(PREEMPTED, minutes_ago=60, provisioning=FLEX, kind="preempted", text="Taken."),
        entry(STUCK, minutes_ago=30, zone=B, kind="internal-error", text="Code 13."),
    ]
    first, second = failed_landings(history, "v6e-8", NOW)
    assert (first.zone, first.until) == (B, NOW - 20 * MINUTE)
    assert second == RefusalRecord(
        zone=A,
        provisioning=FLEX,
        kind="preempted",
        scope=RefusalScope.PAIR,
        message="Taken.",
        at=NOW - HOUR,
        until=NOW + HOUR,
        times=1,
        landed=True,
    )


def test_a_run_that_begins_now_doubts_what_is_not_forgotten_yet() -> None:
    history = [
        entry(PREEMPTED, minutes_ago=60, kind="preempted"),
        entry(STUCK, minutes_ago=60, zone=B, kind="internal-error"),
        entry(STUCK, minutes_ago=19, zone=C, kind="internal-error"),
    ]
    assert doubtful_places_of_history(history, "v6e-8", NOW) == {Place(A, SPOT), Place(C, SPOT)}
    assert not doubtful_places_of_history(history, "v6e-1", NOW)


@pytest.mark.parametrize(
    ("history", "seconds"),
    [
        pytest.param([], 0.0, id="no grant"),
        pytest.param(
            [entry(GRANTED, minutes_ago=5, waited=7.0), entry(GRANTED, minutes_ago=9, waited=3.0)],
            7.0,
            id="the longest",
        ),
        pytest.param([entry(GRANTED, minutes_ago=7 * 24 * 60, waited=7.0)], 7.0, id="a week ago"),
        pytest.param([entry(GRANTED, minutes_ago=7 * 24 * 60 + 1, waited=7.0)], 0.0, id="more than a week ago"),
        pytest.param([entry(LAPSED, minutes_ago=5, waited=7.0)], 0.0, id="what was not granted"),
        pytest.param([entry(GRANTED, minutes_ago=5, waited=7.0, type="v6e-1")], 0.0, id="another type"),
        pytest.param([entry(GRANTED, minutes_ago=5, waited=7.0, zone=B)], 0.0, id="a place that the profile excludes"),
        pytest.param([entry(GRANTED, minutes_ago=5, waited=7.0, provisioning=FLEX)], 0.0, id="another model"),
    ],
)
def test_the_longest_wait_for_a_recent_grant(history: list[HistoryEntry], seconds: float) -> None:
    assert longest_recent_wait(deployment([candidate(A)]), history, NOW) == seconds


HISTORY = (
    entry(REFUSED, minutes_ago=90, kind="stockout"),
    entry(GRANTED, minutes_ago=60, waited=10.0),
    entry(GRANTED, minutes_ago=50, waited=20.0),
    entry(GRANTED, minutes_ago=40, waited=90.0),
    entry(LAPSED, minutes_ago=30, kind="lapsed"),
    entry(RELEASED, minutes_ago=20, kind="released"),
)


@pytest.mark.parametrize(
    ("entries", "window", "summary"),
    [
        pytest.param((), HOUR, Luck(counts={}, median_wait=None), id="nothing was requested there"),
        pytest.param(
            HISTORY,
            HOUR,
            Luck(
                last=LAPSED,
                last_kind="lapsed",
                last_age=30 * MINUTE,
                counts={GRANTED: 3, LAPSED: 1, RELEASED: 1},
                median_wait=20.0,
            ),
            id="of an hour, its end included",
        ),
        pytest.param(
            HISTORY[:1],
            HOUR,
            Luck(last=REFUSED, last_kind="stockout", last_age=90 * MINUTE, counts={}, median_wait=None),
            id="the last result may be older",
        ),
        pytest.param(
            HISTORY[5:], HOUR, Luck(counts={RELEASED: 1}, median_wait=None), id="what we released is no result"
        ),
        pytest.param(
            (entry(REFUSED, minutes_ago=-1),),
            HOUR,
            Luck(last=REFUSED, last_age=0.0, counts={REFUSED: 1}, median_wait=None),
            id="a clock that is ahead",
        ),
    ],
)
def test_the_figures_that_people_see(entries: tuple[HistoryEntry, ...], window: float, summary: Luck) -> None:
    result = summarize_results(entries, now=NOW, window=window)
    assert result == summary
    assert list(result.counts) == sorted(summary.counts)


@pytest.mark.parametrize(
    ("places", "order"),
    [
        pytest.param([(2.0, 9.0), (1.0, 0.0)], [1, 0], id="the cheaper one first"),
        pytest.param([(1.0, 0.0), (1.0, 0.5)], [1, 0], id="at the same price the one with the better score"),
        pytest.param([(None, 9.0), (99.0, 0.0)], [1, 0], id="an unknown price last"),
    ],
)
def test_what_orders_places_of_one_model(places: Sequence[tuple[float | None, float]], order: list[int]) -> None:
    keys = [preference(usd, score, is_listed=False) for usd, score in places]
    assert sorted(range(len(keys)), key=keys.__getitem__) == order
    assert {preference(usd, score, is_listed=True) for usd, score in places} == {(0.0, 0.0)}
    assert preference(None, 1.0, is_listed=False) == (inf, -1.0)
