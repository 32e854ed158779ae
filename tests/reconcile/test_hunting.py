"""The simulator of hunts is held against worlds that can be reckoned by hand. What it measures is no test: `make hunt`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import pytest
from bench.hunting import baselines, table
from bench.hunting.kinds import Kind
from bench.hunting.oracle import floor, oracle
from bench.hunting.ours import hunt
from bench.hunting.outcome import Outcome
from bench.hunting.policies import NAMES, ORACLE, policies, row
from bench.hunting.run import Job, Row, run
from bench.hunting.setting import HOUR, MINUTE, Apis, Habit, Refusals, Reopening, Setting
from bench.hunting.worlds import Place, Window, World, world

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone

TPU_API, INSTANCES = Backend.QUEUED_RESOURCE, Backend.GCE_INSTANCE
FLEX, SPOT = Provisioning.FLEX_START, Provisioning.SPOT
KINDS = {
    "2 h": Setting(gap=2 * HOUR),
    "apart": Setting(gap=2 * HOUR, reopening=Reopening.APART),
    "none shared": Setting(gap=2 * HOUR, shared=0.0),
    "all fail fast": Setting(gap=2 * HOUR, refusals=Refusals.FAST),
    "all queue": Setting(gap=2 * HOUR, refusals=Refusals.QUEUE),
    "late": Setting(gap=2 * HOUR, refusals=Refusals.LATE),
    "quota": Setting(gap=2 * HOUR, quota=16),
    "preempted": Setting(gap=2 * HOUR, preempt=10.0),
    "not everywhere": Setting(gap=2 * HOUR, flex=0.4, spot=0.6),
}


def by_hand(windows: Mapping[str, Sequence[Window]]) -> World:
    places = (Place(Zone(zone), iter(those), frozenset({FLEX, SPOT})) for zone, those in windows.items())
    return World(setting=Setting(gap=HOUR), places=tuple(places))


def opening(minute: float, *, minutes: float = 8, lands: float = 3, internal: bool = False) -> Window:
    begin = minute * MINUTE
    return Window(begin, begin + minutes * MINUTE, lands * MINUTE, internal)


def test_a_window_is_usable_once_its_slice_has_landed() -> None:
    windows = {"xx-west1-a": [opening(10)], "xx-west2-a": [opening(20)]}
    assert oracle(by_hand(windows)) == 13 * MINUTE
    outcome = hunt(by_hand(windows), None, (FLEX,))
    assert (outcome.usable_at, outcome.creates, outcome.left, outcome.doubles) == (13 * MINUTE, 2, 0, 0)


def test_a_grant_that_ends_in_code_13_is_worth_nothing_to_anybody() -> None:
    windows = {"xx-west1-a": [opening(10, internal=True), opening(60)]}
    assert oracle(by_hand(windows)) == 63 * MINUTE
    assert hunt(by_hand(windows), None, (FLEX,)).usable_at == 63 * MINUTE


def test_zones_that_open_together_grant_twice_and_one_is_given_back() -> None:
    windows = {"xx-west1-a": [opening(10)], "xx-west1-b": [opening(10, lands=4)]}
    outcome = hunt(by_hand(windows), None, (FLEX,))
    assert (outcome.usable_at, outcome.left, outcome.doubles) == (13 * MINUTE, 0, 1)


def test_what_fails_fast_is_answered_after_half_a_minute_and_sees_only_what_is_open_then() -> None:
    windows = {"xx-west1-a": [opening(0.25, minutes=0.25), opening(20)], "xx-west2-a": [opening(1.25, minutes=0.5)]}
    outcome = baselines.sweep(by_hand(windows))
    # Both zones take a minute, the pause five: asked at 0, 6, 12 and 18 it is too early, at 24 minutes it is open.
    assert (outcome.usable_at, outcome.creates) == (27.5 * MINUTE, 9)


@pytest.mark.parametrize("requests", [1, 4])
def test_no_place_is_left_unseen_where_there_are_more_than_requests(requests: int) -> None:
    full = {f"xx-west{i}-a": [opening(10_000)] for i in range(1, 24)}
    outcome = hunt(by_hand(full | {"xx-west24-a": [opening(20, minutes=600)]}), requests, (SPOT,))
    a_round = 24 * 0.75 * MINUTE / requests
    assert outcome.usable_at <= 20 * MINUTE + a_round + 4 * MINUTE


@pytest.mark.parametrize("opens", [300, 301, 302, 303])
def test_a_full_place_is_asked_again_every_two_minutes_however_often_it_was_full(opens: float) -> None:
    outcome = hunt(by_hand({"xx-west1-a": [opening(opens, minutes=2)]}), None, (SPOT,))
    assert outcome.usable_at <= (opens + 2 + 4) * MINUTE


def test_who_asks_nowhere_twice_never_gets_anything() -> None:
    windows = {"xx-west1-a": [opening(5)], "xx-west2-a": [opening(5)]}
    outcome = baselines.blacklist(by_hand(windows))
    assert (outcome.usable_at, outcome.creates) == (math.inf, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_sooner_than_the_oracle_and_we_leave_nothing_behind(kind: str) -> None:
    job = Job(setting=KINDS[kind], names=NAMES, requests=(None, 3), models=(FLEX, SPOT), worlds=6, seed=7)
    rows = run(job, processes=1)
    soonest = [o.usable_at for o in rows[ORACLE].outcomes]
    for name, one in rows.items():
        assert all(o.usable_at >= s for o, s in zip(one.outcomes, soonest, strict=True)), name
        assert not any(o.left for o in one.outcomes), name


@pytest.mark.parametrize("kind", ["2 h", "all fail fast", "late", "quota", "preempted"])
def test_looks_that_are_left_out_would_have_changed_nothing(kind: str) -> None:
    for index in range(3):
        one, other = (world(KINDS[kind], 3, index) for _ in range(2))
        assert hunt(one, 6) == hunt(other, 6, skips=False)


@pytest.mark.parametrize("reopening", list(Reopening))
def test_zones_open_as_often_as_the_setting_says(reopening: Reopening) -> None:
    setting = Setting(gap=HOUR, sigma=0.5, reopening=reopening)
    days = 60 * 24 * HOUR
    opened = [_opened(place, days) for index in range(20) for place in world(setting, 1, index).places]
    assert fmean(opened) == pytest.approx(setting.ours * days / (setting.mean_gap + setting.window), rel=0.1)


def test_policies_see_the_same_world_whoever_looks_first() -> None:
    stored, fresh = (world(KINDS["2 h"], 5, 0) for _ in range(2))
    those = tuple(policies(NAMES, (4,), (FLEX, SPOT)).values())
    assert [policy(stored) for policy in those] == [policy(fresh) for policy in those[::-1]][::-1]


@pytest.mark.parametrize(
    ("requests", "models", "minutes"),
    [
        (None, (SPOT,), 12),  # each zone is answered every half minute
        (1, (SPOT,), 14),  # each zone every minute, in turn: the first one is always closed then
        (None, (FLEX, SPOT), 11.1),  # in every queue from the start
        (2, (FLEX, SPOT), 11.1),  # in the first one's queue
    ],
)
def test_what_can_be_reached_at_best_without_knowing_a_window(
    requests: int | None, models: tuple[Provisioning, ...], minutes: float
) -> None:
    first = [
        opening(10.2, minutes=0.2, lands=1),
        opening(10.6, minutes=0.2, lands=0.5),
        opening(11, minutes=0.1, lands=1),
    ]
    windows = {"xx-west1-a": first, "xx-west2-a": [opening(10.6, minutes=1, lands=3)]}
    assert floor(by_hand(windows), requests, models) == pytest.approx(minutes * MINUTE)


@pytest.mark.parametrize(("habit", "model"), [(Habit.EARLY_PREEMPTION, SPOT), (Habit.INTERNAL_ERROR, FLEX)])
def test_what_a_place_gives_that_never_lasts_counts_for_nobody(habit: Habit, model: Provisioning) -> None:
    offers = frozenset({FLEX, SPOT})
    lure = Place(Zone("xx-west1-a"), iter([opening(0, minutes=600)]), offers, habit=habit)
    sound = Place(Zone("xx-west2-a"), iter([opening(60)]), offers)
    assert floor(World(setting=Setting(gap=HOUR), places=(lure, sound)), None, (model,)) == 63 * MINUTE


@pytest.mark.parametrize("kind", ["2 h", "all fail fast", "late", "not everywhere"])
def test_the_bounds_are_in_order(kind: str) -> None:
    for index in range(20):
        here = world(KINDS[kind], 4, index)
        assert oracle(here) <= floor(here, None, (FLEX, SPOT)) <= floor(here, None, (SPOT,))


def test_a_setting_without_shared_gaps_is_the_same_world_however_zones_would_reopen() -> None:
    apart = replace(KINDS["none shared"], reopening=Reopening.APART)
    assert oracle(world(KINDS["none shared"], 1, 0)) == oracle(world(apart, 1, 0))


@pytest.mark.parametrize(
    ("is_lured", "ours", "sweep", "missed"),
    [
        (False, 1.15, 2.0, []),
        (False, 1.25, 2.0, ["p50 is 1.25 [1.25, 1.25] of the oracle's"]),
        (False, 1.40, 2.0, ["p50 is 1.40 [1.40, 1.40] of the oracle's", "p90 is 1.40 [1.40, 1.40] of the oracle's"]),
        (False, 1.15, 1.0, ["p50 is 1.15 [1.15, 1.15] of the sweep's", "p90 is 1.15 [1.15, 1.15] of the sweep's"]),
        (True, 1.40, 8.0, []),
        (True, 1.40, 2.0, ["the waste is 0.70 [0.70, 0.70] of the sweep's"]),
    ],
)
def test_the_table_says_which_goals_are_not_met(is_lured: bool, ours: float, sweep: float, missed: list[str]) -> None:
    worlds = [10.0 * (i + 1) for i in range(50)]
    unmet = not_met(Kind(setting=KINDS["2 h"], is_lured=is_lured), worlds, ours, sweep)
    assert [str(goal).removeprefix(f"here: {row(8)}: ").partition(";")[0] for goal in unmet] == missed
    assert all("The interval does not include it." in str(goal) for goal in unmet)


def test_an_interval_holds_what_the_worlds_cannot_tell() -> None:
    """Most of the worlds are alike; in the others we take three times as long."""
    oracle = [60.0] * 100
    ours = [60.0] * 52 + [180.0] * 48
    estimate = next(table.goals("here", Kind(setting=KINDS["2 h"]), rows_of(oracle, ours, oracle))).estimate
    assert (estimate.value, estimate.low, estimate.high) == (1.0, 1.0, 3.0)


def rows_of(oracle: Sequence[float], ours: Sequence[float], sweep: Sequence[float]) -> dict[str, Row]:
    """What each policy took in each world, in minutes; it wasted as many chip-minutes."""
    return {
        name: Row(outcomes=tuple(Outcome(usable_at=m * MINUTE, wasted=m) for m in minutes), seconds=1.0)
        for name, minutes in {ORACLE: oracle, row(8): ours, table.SWEEP: sweep}.items()
    }


def not_met(kind: Kind, oracle: Sequence[float], ours: float, sweep: float) -> list[table.Goal]:
    """The goals that are not met where both take so many times as long as the oracle in every world."""
    rows = rows_of(oracle, [m * ours for m in oracle], [m * sweep for m in oracle])
    return [goal for goal in table.goals("here", kind, rows) if not goal.is_met]


def _opened(place: Place, until: float) -> int:
    at, count = 0.0, 0
    while (window := place.window(at)) is not None and window.opens < until:
        at, count = window.closes, count + 1
    return count


@pytest.mark.parametrize(
    ("backends", "minute"),
    [((TPU_API,), 603), ((INSTANCES,), 13), ((TPU_API, INSTANCES), 13)],
    ids=["one API alone", "the other API alone", "both"],
)
def test_capacity_at_one_api_alone_is_found_where_both_are_asked(backends: tuple[Backend, ...], minute: int) -> None:
    offers = frozenset({FLEX})
    places = (
        Place(Zone("xx-west1-a"), iter([opening(600)]), offers),
        Place(Zone("xx-west1-a"), iter([opening(10), opening(700)]), offers, backend=INSTANCES),
    )
    here = World(setting=Setting(gap=HOUR, apis=Apis.APART), places=places)
    assert hunt(here, None, (FLEX,), backends=backends).usable_at == minute * MINUTE


def test_the_apis_of_a_world_have_windows_and_quotas_apart_or_the_same_windows() -> None:
    for apis in (Apis.APART, Apis.ALIKE):
        here = world(Setting(gap=2 * HOUR, apis=apis, no_quota=0.5), 1, 0)
        ours, theirs = here.of_api(TPU_API), here.of_api(INSTANCES)
        assert [place.zone for place in ours] == [place.zone for place in theirs]
        assert [p.has_quota for p in ours] != [p.has_quota for p in theirs]
        same = [p.window(0.0) == q.window(0.0) for p, q in zip(ours, theirs, strict=True)]
        assert all(same) if apis is Apis.ALIKE else not any(same)
