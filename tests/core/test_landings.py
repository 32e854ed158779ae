"""What a grant that did not last counts for, as tables: holds that grow, what is forgotten, what others saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tpudeploy.domain.deployment import Candidate, Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Phase, Refusal, Remedy, Scope, Slice
from tpudeploy.domain.state import Attempt, Record, Refused
from tpudeploy.reconcile.keep import seniority
from tpudeploy.reconcile.landings import (
    LASTING,
    PREEMPTED,
    doubtful_places,
    early_preemption,
    hold_seconds,
    weighed,
    with_failed_landings,
    without_forgiven,
)
from tpudeploy.reconcile.luck import failed_landings
from tpudeploy.reconcile.refusals import remembered

FLEX, SPOT = Provisioning.FLEX_START, Provisioning.SPOT
A, B = Zone("xx-west1-a"), Zone("xx-west2-a")
MINUTE, HOUR = 60.0, 3600.0
NOW = 100 * HOUR
CODE_13 = Refusal(
    kind="internal-error", message="", remedy=Remedy.NEXT_ZONE, scope=Scope.PAIR, holds_seconds=10 * MINUTE
)


def attempt(zone: Zone = A, model: Provisioning = SPOT, *, granted_ago: float | None = None) -> Attempt:
    granted_at = None if granted_ago is None else NOW - granted_ago
    return Attempt(
        name=f"slice-{zone}",
        project="p",
        zone=zone,
        provisioning=model,
        spec={},
        asked_at=NOW - 2 * HOUR,
        booted="",
        granted_at=granted_at,
        provisioning_at=granted_at,
    )


def found() -> Slice:
    return Slice(name="slice", zone=A, phase=Phase.HUSK, raw_state="SUSPENDED", provisioning=SPOT)


def landed(zone: Zone, *, ago: float, held_for: float, times: int = 1) -> Refused:
    at = NOW - ago
    return Refused(
        zone=zone,
        provisioning=SPOT,
        kind=PREEMPTED,
        scope=Scope.PAIR,
        message="",
        at=at,
        until=at + held_for,
        times=times,
        landed=True,
    )


@pytest.mark.parametrize(
    ("kind", "times", "hours"),
    [
        (PREEMPTED, 1, 2),
        (PREEMPTED, 2, 4),
        (PREEMPTED, 9, 24),
        ("internal-error", 1, 1 / 6),
        ("internal-error", 2, 1 / 3),
        ("internal-error", 99, 24),
    ],
)
def test_each_failure_in_a_row_is_held_against_a_place_for_twice_as_long_and_at_most_a_day(
    kind: str, times: int, hours: float
) -> None:
    assert hold_seconds(kind, times) == hours * HOUR


@pytest.mark.parametrize(
    ("model", "lasted", "speaks"),
    [(SPOT, 5 * MINUTE, True), (SPOT, LASTING, False), (SPOT, None, False), (FLEX, 5 * MINUTE, False)],
)
def test_only_spot_that_was_taken_back_soon_after_the_grant_speaks_against_its_place(
    model: Provisioning, lasted: float | None, speaks: bool
) -> None:
    assert (early_preemption(attempt(model=model, granted_ago=lasted), found(), NOW) is not None) is speaks


def test_what_we_gave_up_ourselves_does_not_speak_against_its_place() -> None:
    released = replace(attempt(granted_ago=5 * MINUTE), releasing_at=NOW - MINUTE)
    assert early_preemption(released, found(), NOW) is None


def test_a_refusal_before_the_grant_is_no_failed_landing_and_one_after_it_is() -> None:
    refusals: tuple[Refused, ...] = ()
    for granted_ago in (None, 4 * MINUTE, 3 * MINUTE):
        one = attempt(granted_ago=granted_ago)
        refusals = remembered(refusals, one, CODE_13, held=(), now=NOW, patience=Patience())
    assert [(r.landed, r.times, r.until - NOW) for r in refusals] == [
        (False, 1, 1 * MINUTE),
        (True, 2, 20 * MINUTE),
    ]


@pytest.mark.parametrize(("minutes_ago", "is_doubtful"), [(10, True), (239, True), (241, False)])
def test_a_failure_is_forgotten_after_twice_its_hold(minutes_ago: float, is_doubtful: bool) -> None:
    record = Record(index=0, refusals=(landed(A, ago=minutes_ago * MINUTE, held_for=2 * HOUR),))
    assert (doubtful_places(record, NOW) == {(A, SPOT)}) is is_doubtful


@pytest.mark.parametrize(("lasted", "is_forgiven"), [(LASTING - 1, False), (LASTING, True)])
def test_a_failure_is_forgotten_once_a_slice_has_lasted_there(lasted: float, is_forgiven: bool) -> None:
    refusals = (landed(A, ago=HOUR, held_for=2 * HOUR), landed(B, ago=HOUR, held_for=2 * HOUR))
    left = without_forgiven(refusals, [attempt(granted_ago=lasted)], NOW)
    assert [r.zone for r in left] == ([B] if is_forgiven else [A, B])


@pytest.mark.parametrize(
    ("others", "minutes"),
    [
        ((), 1),
        ((landed(B, ago=HOUR, held_for=2 * HOUR),), 1),
        ((Refused(zone=B, provisioning=SPOT, kind="any", scope=Scope.PAIR, message="", at=NOW, until=NOW + 1),), 120),
    ],
)
def test_where_no_other_place_can_be_hoped_for_a_failed_landing_is_waited_out_like_a_full_place(
    others: tuple[Refused, ...], minutes: float
) -> None:
    failed = landed(A, ago=0, held_for=2 * HOUR)
    record = Record(index=0, refusals=(failed, *others))
    zones = (A, B) if others else (A,)
    candidates = [Candidate(zone=zone, provisioning=SPOT, usd_per_chip_hour=None) for zone in zones]
    assert weighed(candidates, record, NOW, Patience())[0].until - NOW == minutes * MINUTE


def tried(outcome: Ending, *, ago: float, waited: float = MINUTE, zone: Zone = A) -> HistoryEntry:
    kind = PREEMPTED if outcome is Ending.PREEMPTED else ""
    return HistoryEntry(
        at=NOW - ago,
        zone=zone,
        provisioning=SPOT,
        type="v6e-8",
        chips=8,
        outcome=outcome,
        waited=waited,
        kind=kind,
        text="",
    )


@pytest.mark.parametrize(
    ("history", "times"),
    [
        ([], None),
        ([tried(Ending.REFUSED, ago=HOUR)], None),
        ([tried(Ending.PREEMPTED, ago=HOUR)], 1),
        # Asked for after the first one had failed: the second failure in a row.
        ([tried(Ending.PREEMPTED, ago=2 * HOUR), tried(Ending.PREEMPTED, ago=HOUR)], 2),
        # Asked for before: both were taken back together, and that is one word.
        ([tried(Ending.PREEMPTED, ago=2 * HOUR), tried(Ending.PREEMPTED, ago=HOUR, waited=3 * HOUR)], 1),
        # A grant that has lasted outweighs it, one of a minute ago does not.
        ([tried(Ending.PREEMPTED, ago=9 * HOUR), tried(Ending.GRANTED, ago=HOUR)], None),
        ([tried(Ending.PREEMPTED, ago=9 * HOUR), tried(Ending.GRANTED, ago=MINUTE)], 1),
    ],
)
def test_what_the_zone_history_holds_against_a_place(history: list[HistoryEntry], times: int | None) -> None:
    assert [r.times for r in failed_landings(history, "v6e-8", NOW)] == ([] if times is None else [times])
    assert not failed_landings(history, "v6e-1", NOW)


def test_what_a_record_remembers_of_a_place_itself_is_not_replaced_by_what_others_saw() -> None:
    own = landed(A, ago=HOUR, held_for=4 * HOUR, times=2)
    others = (landed(A, ago=MINUTE, held_for=2 * HOUR), landed(B, ago=MINUTE, held_for=2 * HOUR))
    known = with_failed_landings(Record(index=0, refusals=(own,)), others, NOW)
    assert known.refusals == (own, others[1])
    assert with_failed_landings(known, others, NOW) is known


def test_of_two_slices_the_one_in_a_place_without_failures_is_kept_and_before_it_one_that_clients_use() -> None:
    first, second = attempt(A, granted_ago=HOUR), attempt(B, granted_ago=MINUTE)
    assert min((first, second), key=seniority) is first
    assert min((first, second), key=lambda one: seniority(one, {(A, SPOT)})) is second
    served = replace(first, served=True)
    assert min((served, second), key=lambda one: seniority(one, {(A, SPOT)})) is served
