"""Where to ask next, as tables: what was refused, by whom, and how long ago; no cloud, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from bench.hunting.ours import deployment
from bench.hunting.setting import HOUR, MINUTE, Setting
from bench.hunting.worlds import Place, World

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import Refusal, Remedy, Scope
from tpudeploy.domain.state import Attempt, Record, Refused
from tpudeploy.reconcile.placement import next_places
from tpudeploy.reconcile.refusals import remembered

FLEX, SPOT = Provisioning.FLEX_START, Provisioning.SPOT
A, B, C, D = (Zone(f"xx-west{i}-a") for i in range(1, 5))
NOW = 10 * HOUR


def refused(
    zone: Zone, minutes_ago: float, *, scope: Scope = Scope.PAIR, landed: bool = False, held: int = 0
) -> Refused:
    """A refusal that has lapsed, unless a landing failed: that is still remembered."""
    at = NOW - minutes_ago * MINUTE
    return Refused(
        zone=zone,
        provisioning=SPOT,
        kind="any",
        scope=scope,
        message="",
        at=at,
        until=at + (0.75 if landed else 0.0) * minutes_ago * MINUTE,
        held=held,
        landed=landed,
    )


def asked(*refusals: Refused, requests: int = 2, models: tuple[Provisioning, ...] = (SPOT,)) -> list[Zone]:
    return asked_by(Record(index=0, refusals=refusals), requests, models)


def asked_by(record: Record, requests: int, models: tuple[Provisioning, ...] = (SPOT,)) -> list[Zone]:
    places = tuple(Place(zone, iter(()), frozenset(models)) for zone in (A, B, C, D))
    aim = deployment(World(setting=Setting(gap=HOUR), places=places), requests, models)
    return [place.zone for place in next_places(aim, record, (), luck={}, now=NOW, patience=Patience())]


def test_what_was_never_asked_comes_first_then_what_was_asked_longest_ago() -> None:
    assert asked() == [A, B]
    assert asked(refused(A, 2), refused(B, 2)) == [C, D]
    assert asked(refused(A, 2), refused(B, 5), refused(C, 4), refused(D, 3)) == [B, C]
    assert asked(refused(A, 9), refused(A, 2), refused(B, 5), refused(C, 4), refused(D, 3)) == [B, C]


def test_home_is_asked_before_the_round_goes_on() -> None:
    record = Record(index=0, home=A, refusals=(refused(A, 2), refused(B, 5)))
    assert asked_by(record, 2) == [A, C]


def test_a_place_whose_landing_failed_comes_after_all_others() -> None:
    assert asked(refused(A, 30, landed=True), refused(B, 2), refused(C, 3), requests=4) == [D, C, B, A]


@pytest.mark.parametrize("scope", set(Scope) - {Scope.PAIR})
def test_a_refusal_that_speaks_of_more_than_one_place_says_nothing_of_what_that_place_has(scope: Scope) -> None:
    assert asked(refused(A, 2, scope=scope)) == [A, B]


def test_a_place_that_our_own_chips_kept_us_out_of_is_still_to_be_seen() -> None:
    full = refused(B, 2, scope=Scope.REGION_QUOTA, held=8)
    assert asked(refused(A, 5), refused(B, 9), refused(C, 4), refused(D, 3), full) == [B, A]


def test_what_queues_is_chosen_by_preference_whatever_the_round_says() -> None:
    assert asked(refused(A, 2), refused(B, 2), requests=4, models=(FLEX, SPOT)) == [A, B, C, D]


STOCKOUT = Refusal(
    kind="stockout", message="", remedy=Remedy.NEXT_ZONE, scope=Scope.PAIR, holds_seconds=180.0, is_known=True
)


@pytest.mark.parametrize(
    ("refusals", "seconds"),
    [
        ([STOCKOUT], 60),
        ([STOCKOUT] * 20, 60),
        ([replace(STOCKOUT, holds_seconds=30.0)], 30),
        ([replace(STOCKOUT, remedy=Remedy.DROP_ZONE, holds_seconds=86400.0)], 86400),
        ([replace(STOCKOUT, scope=Scope.PROJECT, remedy=Remedy.LOOK_AGAIN)], 180),
        ([replace(STOCKOUT, is_known=False)] * 2, 180),
        ([replace(STOCKOUT, is_known=False)] * 3, Patience().closed),
    ],
)
def test_how_long_a_place_rests_after_what_it_said(refusals: Sequence[Refusal], seconds: float) -> None:
    attempt = Attempt(name="n", project="p", zone=A, provisioning=SPOT, spec={}, asked_at=NOW - 30, booted="")
    standing: tuple[Refused, ...] = ()
    for refusal in refusals:
        standing = remembered(standing, attempt, refusal, held=(), now=NOW, patience=Patience())
    assert [r.until - r.at for r in standing] == [seconds]
