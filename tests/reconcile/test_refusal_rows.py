"""What a refusal closes, for how long, and how it is counted when it is said again. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from reconcile.cases import (
    FLEX,
    INSTANCES,
    MINUTE,
    NOW,
    ON_DEMAND,
    PATIENCE,
    RESERVED,
    SPOT,
    A,
    B,
    C,
    attempt,
    candidate,
    failed_landing,
    granted,
    queued,
    record,
    refusal,
    refused,
    releasing,
)

from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.slices import Refusal, RefusalScope, Remedy
from tpudeploy.domain.state import Attempt, RefusalRecord, State
from tpudeploy.reconcile.refusals import (
    add_refusal,
    chips_counted_against,
    chips_of,
    closes,
    covers,
    frees,
    places_not_stopped,
    places_we_filled,
    standing_refusals,
    without_freed_refusals,
)

PLACES = {Place(zone, model) for zone in (A, B, C) for model in Provisioning}
PREEMPTIBLE = {SPOT, FLEX}
QUOTAS = (RefusalScope.ZONE_QUOTA, RefusalScope.REGION_QUOTA)


@pytest.mark.parametrize(
    ("scope", "model", "places"),
    [
        pytest.param(RefusalScope.PAIR, SPOT, {Place(A, SPOT)}, id="a place: itself"),
        pytest.param(RefusalScope.ZONE, SPOT, {Place(A, p) for p in Provisioning}, id="a zone: each model in it"),
        pytest.param(
            RefusalScope.REGION, SPOT, {Place(z, p) for z in (A, B) for p in Provisioning}, id="a region: its zones"
        ),
        pytest.param(
            RefusalScope.REGION_RESOURCES,
            SPOT,
            {Place(z, p) for z in (A, B) for p in Provisioning},
            id="a region's disks and addresses: its zones",
        ),
        pytest.param(RefusalScope.PROJECT, SPOT, PLACES, id="the project: everything"),
        pytest.param(
            RefusalScope.ZONE_QUOTA, SPOT, {Place(A, SPOT), Place(A, FLEX)}, id="a zone's preemptible quota, by spot"
        ),
        pytest.param(
            RefusalScope.ZONE_QUOTA,
            FLEX,
            {Place(A, SPOT), Place(A, FLEX)},
            id="a zone's preemptible quota, by flex-start",
        ),
        pytest.param(
            RefusalScope.ZONE_QUOTA, ON_DEMAND, {Place(A, ON_DEMAND), Place(A, RESERVED)}, id="a zone's on-demand quota"
        ),
        pytest.param(
            RefusalScope.REGION_QUOTA,
            FLEX,
            {Place(z, p) for z in (A, B) for p in PREEMPTIBLE},
            id="a region's preemptible quota",
        ),
        pytest.param(
            RefusalScope.REGION_QUOTA,
            RESERVED,
            {Place(z, p) for z in (A, B) for p in (ON_DEMAND, RESERVED)},
            id="a region's on-demand quota, by a reservation",
        ),
    ],
)
def test_a_refusal_covers_what_its_scope_names(scope: RefusalScope, model: Provisioning, places: set[Place]) -> None:
    row = refused(A, scope=scope, provisioning=model)
    assert {place for place in PLACES if covers(row, candidate(*place[:2]))} == places


@pytest.mark.parametrize("scope", RefusalScope)
def test_a_refusal_covers_nothing_at_the_other_api(scope: RefusalScope) -> None:
    here, there = candidate(A), candidate(A, backend=INSTANCES)
    assert [covers(refused(A, scope=scope), each) for each in (here, there)] == [True, False]
    row = refused(A, scope=scope, backend=INSTANCES)
    assert [covers(row, each) for each in (here, there)] == [False, True]


def test_what_only_a_person_lifts_closes_every_place_of_its_api_and_none_of_the_other() -> None:
    row = refused(A, stops=True, backend=INSTANCES)
    assert closes(row, candidate(C, FLEX, backend=INSTANCES), 8, ())
    assert not closes(row, candidate(A), 8, ())
    places = [candidate(C, backend=INSTANCES), candidate(A)]
    assert places_not_stopped(places, [row, refused(A)]) == (candidate(A),)


@pytest.mark.parametrize(
    ("row", "attempts", "closed"),
    [
        pytest.param(refused(A), [], True, id="a full place"),
        pytest.param(refused(B), [], False, id="another place"),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA), [], True, id="a quota that was full while nothing was held"
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=8),
            [],
            False,
            id="a quota that was full while 8 chips were held",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=8),
            [granted()],
            True,
            id="8 chips are held now, as they were then",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=8),
            [granted(B)],
            False,
            id="8 chips are held in another zone",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.REGION_QUOTA, held=16),
            [granted(B)],
            False,
            id="less is held in the region than then",
        ),
    ],
)
def test_whether_a_refusal_speaks_against_a_request_of_8_chips(
    row: RefusalRecord, attempts: list[Attempt], closed: bool
) -> None:
    assert closes(row, candidate(A), 8, iter(attempts)) is closed


def test_every_request_of_ours_counts_against_what_a_refusal_covers() -> None:
    small = attempt(B, spec={"tpu.type": "v6e-4"})
    ours = [granted(A), small, releasing(C), queued(A), attempt(A, ON_DEMAND), attempt(A, spec={})]
    assert chips_counted_against(refused(A, scope=RefusalScope.ZONE_QUOTA), ours) == 16
    assert chips_counted_against(refused(A, scope=RefusalScope.REGION_QUOTA), ours) == 20
    assert [chips_of(one) for one in (ours[0], small, ours[-1])] == [8, 4, 0]


@pytest.mark.parametrize(
    ("row", "ours", "minutes"),
    [
        pytest.param(refused(A, lasts=2), [], 2, id="a refusal holds until its end"),
        pytest.param(refused(A), [], None, id="one that ends now has ended"),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=8), [releasing()], 0.5, id="a quota: until the next look"
        ),
        pytest.param(
            refused(A, lasts=2, scope=RefusalScope.ZONE_QUOTA, held=8),
            [releasing()],
            2,
            id="or as long as it holds anyway",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=8),
            [granted()],
            None,
            id="what is not being deleted frees nothing",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=8),
            [releasing(C)],
            None,
            id="what is deleted elsewhere frees nothing",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA),
            [releasing()],
            None,
            id="a quota that others filled is not waited for",
        ),
        pytest.param(
            refused(A, scope=RefusalScope.ZONE_QUOTA, held=1),
            [releasing(spec={"tpu.type": "v6e-1"})],
            0.5,
            id="a quota, by a single chip of ours",
        ),
        pytest.param(refused(A, held=8), [releasing()], None, id="a full place is not waited for"),
        pytest.param(
            refused(A, scope=RefusalScope.REGION_QUOTA, held=8),
            [releasing(B)],
            0.5,
            id="the quota of a region likewise",
        ),
    ],
)
def test_a_full_quota_stays_full_while_our_chips_leave(
    row: RefusalRecord, ours: list[Attempt], minutes: float | None
) -> None:
    standing = standing_refusals([candidate()], record(*ours, refusals=[row]), NOW, PATIENCE)
    assert [r.until - NOW for r in standing] == ([] if minutes is None else [minutes * MINUTE])


def test_a_failed_landing_holds_as_long_as_a_full_place_where_no_other_place_can_be_hoped_for() -> None:
    state = record(refusals=[failed_landing(A, minutes_ago=0)])
    ends = [
        [r.until - NOW for r in standing_refusals([candidate(z) for z in zones], state, NOW, PATIENCE)]
        for zones in ((A, B), (A,))
    ]
    assert ends == [[120 * MINUTE], [MINUTE]]


@pytest.mark.parametrize(
    ("rows", "places"),
    [
        pytest.param(
            [refused(A, scope=RefusalScope.ZONE_QUOTA, held=8)], {Place(A, SPOT)}, id="chips of ours filled its quota"
        ),
        pytest.param(
            [refused(A, scope=RefusalScope.REGION_QUOTA, held=8)], {Place(A, SPOT)}, id="or that of its region"
        ),
        pytest.param([refused(A, scope=RefusalScope.ZONE_QUOTA)], set(), id="chips of others did"),
        pytest.param([refused(A, held=8)], set(), id="it was full itself"),
        pytest.param(
            [refused(A, scope=RefusalScope.ZONE_QUOTA, held=8), refused(A, 5)],
            {Place(A, SPOT)},
            id="it was full itself before that",
        ),
        pytest.param(
            [refused(A, 5, scope=RefusalScope.ZONE_QUOTA, held=8), refused(A)],
            set(),
            id="it was full itself after that",
        ),
    ],
)
def test_the_places_that_only_our_own_chips_kept_us_out_of(rows: Sequence[RefusalRecord], places: set[Place]) -> None:
    assert places_we_filled(record(refusals=rows)) == places
    assert places_we_filled(record(refusals=rows[::-1])) == places


STOCKOUT = refusal()
SILENCE = refusal(kind="unanswered", holds_seconds=120.0)


def after(
    *refusals: Refusal, one: Attempt | None = None, rows: tuple[RefusalRecord, ...] = ()
) -> tuple[RefusalRecord, ...]:
    """Return the rows that the state keeps after these refusals of one request."""
    for each in refusals:
        rows = add_refusal(rows, one or attempt(), each, own_attempts=(), now=NOW, patience=PATIENCE)
    return rows


@pytest.mark.parametrize(
    ("refusals", "seconds", "times"),
    [
        pytest.param([STOCKOUT], 60, 1, id="a full place: a minute"),
        pytest.param([STOCKOUT] * 20, 60, 20, id="a full place: a minute, however often it was full"),
        pytest.param([replace(STOCKOUT, holds_seconds=30.0)], 30, 1, id="or less, where the text says so"),
        pytest.param(
            [replace(STOCKOUT, remedy=Remedy.DROP_ZONE, holds_seconds=86400.0)], 86400, 1, id="a zone to drop: a day"
        ),
        pytest.param(
            [replace(STOCKOUT, scope=RefusalScope.PROJECT, remedy=Remedy.LOOK_AGAIN)],
            180,
            1,
            id="a project: what it says",
        ),
        pytest.param([replace(STOCKOUT, scope=RefusalScope.ZONE)], 180, 1, id="a zone: what it says"),
        pytest.param([replace(STOCKOUT, is_known=False)] * 2, 180, 2, id="unknown words: what is guessed, twice"),
        pytest.param(
            [replace(STOCKOUT, is_known=False)] * 3, 86400, 3, id="unknown words: the third time for a person"
        ),
        pytest.param([STOCKOUT] * 3, 60, 3, id="known words never wait for a person"),
        pytest.param([SILENCE], 120, 1, id="no answer: two minutes"),
        pytest.param([SILENCE] * 2, 240, 2, id="no answer again: twice as long"),
        pytest.param([SILENCE] * 3, 480, 3, id="and again"),
        pytest.param([SILENCE] * 2000, 600, 2000, id="no answer for days: ten minutes at most"),
        pytest.param([replace(STOCKOUT, limit=7)], 86400, 1, id="a limit below one slice: for a person"),
        pytest.param([replace(STOCKOUT, limit=8)], 60, 1, id="a limit of one slice: a minute"),
    ],
)
def test_how_long_a_place_is_left_alone_after_what_it_said(
    refusals: Sequence[Refusal], seconds: float, times: int
) -> None:
    assert [(r.until - r.at, r.times) for r in after(*refusals)] == [(seconds, times)]


@pytest.mark.parametrize(
    ("one", "reply", "landed"),
    [
        pytest.param(attempt(), refusal(), False, id="instead of a grant"),
        pytest.param(granted(), refusal(), True, id="after the grant"),
        pytest.param(attempt(provisioning_at=NOW), refusal(), True, id="while Google makes the slice"),
        pytest.param(granted(), refusal(remedy=Remedy.LOOK_AGAIN), True, id="after the grant, for a passing reason"),
        pytest.param(granted(), refusal(remedy=Remedy.DROP_ZONE), False, id="the zone has no such hardware"),
        pytest.param(granted(), refusal(remedy=Remedy.STOP), False, id="a person has to act"),
        pytest.param(granted(), refusal(RefusalScope.ZONE_QUOTA), False, id="a quota is full"),
    ],
)
def test_a_refusal_counts_as_a_failed_landing(one: Attempt, reply: Refusal, landed: bool) -> None:
    assert [r.landed for r in after(reply, one=one)] == [landed]


def test_a_failed_landing_counts_with_the_one_before_whatever_both_say_and_not_with_a_full_place() -> None:
    rows = after(refusal())
    rows = after(refusal(kind="internal-error"), one=granted(), rows=rows)
    rows = after(refusal(kind="preempted"), one=granted(), rows=rows)
    assert [(r.landed, r.times, (r.until - NOW) / MINUTE) for r in rows] == [(False, 1, 1), (True, 2, 240)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"zone": B}, id="another zone"),
        pytest.param({"provisioning": FLEX}, id="another model"),
        pytest.param({"kind": "quota"}, id="another kind"),
        pytest.param({"scope": RefusalScope.ZONE}, id="another scope"),
        pytest.param({"landed": True, "until": NOW + MINUTE}, id="a failed landing"),
    ],
)
def test_only_the_same_refusal_of_the_same_place_counts_as_said_again(other: dict[str, object]) -> None:
    before = replace(refused(A, 1), **other)  # type: ignore[arg-type]  # one field of each row
    rows = after(refusal(), rows=(before,))
    assert (rows[0], rows[1].times) == (before, 1)


def test_a_refusal_is_kept_for_an_hour_after_its_end_and_a_failed_landing_as_long_as_it_is_doubtful() -> None:
    lapsed, recent = refused(B, 61, lasts=-60), refused(B, 61, lasts=-59)
    forgotten = failed_landing(C, minutes_ago=241, held_for=120)
    doubtful = failed_landing(C, minutes_ago=239, held_for=120)
    rows = after(refusal(), rows=(lapsed, recent, forgotten, doubtful))
    assert rows[:-1] == (recent, doubtful)


def test_what_is_kept_of_a_refusal() -> None:
    reply = refusal(
        RefusalScope.REGION_QUOTA,
        Remedy.STOP,
        kind="quota",
        message="Full.",
        limit=32,
        is_known=False,
        zones_available=(C,),
    )
    ours = [granted(B, backend=INSTANCES), attempt(C)]
    (row,) = add_refusal((), attempt(A, FLEX, backend=INSTANCES), reply, own_attempts=ours, now=NOW, patience=PATIENCE)
    assert row == RefusalRecord(
        zone=A,
        provisioning=FLEX,
        kind="quota",
        scope=RefusalScope.REGION_QUOTA,
        message="Full.",
        at=NOW,
        until=NOW + 180.0,
        limit=32,
        held=8,
        known=False,
        stops=True,
        times=1,
        landed=False,
        backend=INSTANCES,
        zones_available=(C,),
    )
    assert not after(refusal())[0].stops


@pytest.mark.parametrize(
    ("gone", "scope", "is_free"),
    [
        pytest.param(
            granted(B), RefusalScope.REGION_RESOURCES, True, id="a slice of that region had a disk and an address"
        ),
        pytest.param(
            granted(A, FLEX, backend=INSTANCES),
            RefusalScope.REGION_RESOURCES,
            True,
            id="and so had one at the other API",
        ),
        pytest.param(
            attempt(A, provisioning_at=NOW - 60), RefusalScope.REGION_RESOURCES, True, id="and one whose landing failed"
        ),
        pytest.param(granted(C), RefusalScope.REGION_RESOURCES, False, id="a slice of another region"),
        pytest.param(attempt(A), RefusalScope.REGION_RESOURCES, False, id="a request that was never granted"),
        pytest.param(granted(A), RefusalScope.REGION, False, id="a region that is closed for another reason"),
        pytest.param(granted(A), RefusalScope.REGION_QUOTA, False, id="a quota of chips, which counts them itself"),
    ],
)
def test_a_slice_that_is_gone_makes_room_for_its_disk_and_address(
    gone: Attempt, scope: RefusalScope, is_free: bool
) -> None:
    full, other = refused(A, scope=scope), refused(C, kind="stockout")
    state = State(
        deployment="gemma",
        lineage="",
        records=(record(refusals=[full, other]), record(index=1, refusals=[other]), record(index=2, refusals=[full])),
    )
    rest = [one.refusals for one in without_freed_refusals(state, gone).records]
    assert rest == ([(other,), (other,), ()] if is_free else [(full, other), (other,), (full,)])
    assert frees(gone, full) is is_free
