"""What a grant that did not last counts for, as tables: holds that grow, what is forgotten, what others saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, Refusal, Remedy, Scope, Slice
from tpudeploy.domain.state import Attempt, Refused
from tpudeploy.reconcile.capacity_score import failed_landings
from tpudeploy.reconcile.failed_landings import (
    PREEMPTED,
)
from tpudeploy.reconcile.keep import seniority

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


def test_of_two_slices_the_one_in_a_place_without_failures_is_kept_and_before_it_one_that_clients_use() -> None:
    first, second = attempt(A, granted_ago=HOUR), attempt(B, granted_ago=MINUTE)
    assert min((first, second), key=seniority) is first
    assert min((first, second), key=lambda one: seniority(one, {(A, SPOT)})) is second
    served = replace(first, served=True)
    assert min((served, second), key=lambda one: seniority(one, {(A, SPOT)})) is served
