"""Whether a replacement fits beside the slice that it replaces, by quotas, refusals and reservations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    INSTANCES,
    NOW,
    ON_DEMAND,
    RESERVED,
    SPEC,
    SPOT,
    A,
    B,
    C,
    attempt,
    candidate,
    deployment,
    record,
    refused,
    serving,
)

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import Fill, Quota
from tpudeploy.domain.deployment import Candidate
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity
from tpudeploy.domain.facts import UNLIMITED, ApiFacts, QuotaLimit, QuotaPool, Unknown, Use
from tpudeploy.domain.names import Zone
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import Attempt, RefusalRecord, State
from tpudeploy.planning.headroom import EXPLANATIONS, headroom_problems, needs_headroom
from tpudeploy.planning.quota import QuotaTable

PREEMPTIBLE, DEMAND = QuotaPool.PREEMPTIBLE, QuotaPool.ON_DEMAND


def limit(chips: int, place: str = "us-east5", pool: QuotaPool = PREEMPTIBLE, generation: str = "v6e") -> QuotaLimit:
    is_zone = place.count("-") > 1 or place == ""
    return QuotaLimit(generation=generation, pool=pool, zonal=is_zone, place=place, chips=chips)


def use(chips: int, zone: Zone = A, pool: QuotaPool = PREEMPTIBLE, generation: str = "v6e") -> Use:
    return Use(name="any", zone=zone, generation=generation, pool=pool, chips=chips)


def table(*rows: QuotaLimit | Use, knows_uses: bool = True) -> QuotaTable:
    uses = tuple(row for row in rows if isinstance(row, Use)) if knows_uses else None
    return QuotaTable(limits=tuple(row for row in rows if isinstance(row, QuotaLimit)), uses=uses)


def replacement(old: Attempt | None = None, **fields: Any) -> Change:
    values = {"deployment": "gemma", "replica": 0, "action": Action.REPLACE, "before": SPEC, **fields}
    return Change(**{"slice_name": f"slice-{A}" if old is None else old.name, **values})


def goal(*changes: Change, resumes: bool = False) -> Goal:
    return Goal(name="gemma", deployment=None, fingerprint="", lineage="", serial=0, resumes=resumes, changes=changes)


def problems(
    change: Change,
    quotas: QuotaTable,
    *,
    places: Sequence[Candidate] = (candidate(A),),
    old: Attempt | None = None,
    refusals: Sequence[RefusalRecord] = (),
    chips: int = 8,
    backend: Backend = Backend.QUEUED_RESOURCE,
    **fields: Any,
) -> list[Diagnostic]:
    """Return the problems of a replacement, where `quotas` are those of one API."""
    target = deployment(places, chips=chips, **fields)
    state = State(
        deployment="gemma", lineage="", records=(record(old or serving(A), refusals=refusals), record(index=1))
    )
    return list(headroom_problems(target, goal(change), state, {backend: quotas}, NOW))


def obstacle(*args: Any, **fields: Any) -> str | None:
    """Return why a replacement does not fit, or None where it may."""
    found = problems(*args, **fields)
    return found[0].message.partition(": ")[2] if found else None


@pytest.mark.parametrize(
    ("target", "needed"),
    [
        pytest.param(goal(replacement()), True, id="the new slice comes before the old one goes"),
        pytest.param(goal(replacement(create_before_destroy=False)), False, id="the old slice goes first"),
        pytest.param(goal(replacement(action=Action.RESTART)), False, id="a restart"),
        pytest.param(goal(replacement(action=Action.CREATE), replacement()), True, id="one of several changes"),
        pytest.param(goal(replacement(), resumes=True), False, id="an earlier run began it with an approval"),
        pytest.param(goal(), False, id="no change"),
    ],
)
def test_which_plans_need_room_for_two(target: Goal, needed: bool) -> None:
    assert needs_headroom(target) is needed


FULL = "us-east5 has a quota of 8 preemptible chips, of which 8 are used."


@pytest.mark.parametrize(
    ("quotas", "why"),
    [
        pytest.param(table(limit(8), use(8)), FULL, id="a region's quota that the old slice fills"),
        pytest.param(
            table(limit(8, str(A)), use(8)),
            "us-east5-a has a quota of 8 preemptible chips, of which 8 are used.",
            id="a zone's quota that the old slice fills",
        ),
        pytest.param(
            table(limit(15), use(8)),
            "us-east5 has a quota of 15 preemptible chips, of which 8 are used.",
            id="one chip is missing",
        ),
        pytest.param(table(limit(16), use(8)), None, id="a quota with room for both"),
        pytest.param(table(limit(8), use(9)), None, id="no room even once the old slice is gone: another matter"),
        pytest.param(table(limit(8), use(8), knows_uses=False), None, id="a use that is not known"),
        pytest.param(table(use(8)), None, id="a limit that is not known"),
        pytest.param(table(limit(UNLIMITED), use(8)), None, id="no limit"),
        pytest.param(
            table(limit(UNLIMITED, str(A)), limit(8), use(8)), FULL, id="no limit of the zone, but one of its region"
        ),
        pytest.param(table(limit(8, pool=DEMAND), use(8)), None, id="a quota of the other pool"),
    ],
)
def test_a_quota_with_room_for_one(quotas: QuotaTable, why: str | None) -> None:
    assert obstacle(replacement(), quotas) == why


@pytest.mark.parametrize(
    ("old", "place", "is_full"),
    [
        pytest.param(serving(A, FLEX), candidate(A, SPOT), True, id="flex-start and spot share a pool"),
        pytest.param(serving(A, ON_DEMAND), candidate(A, SPOT), False, id="on-demand has its own"),
        pytest.param(serving(B), candidate(A), True, id="the old slice is in another zone of the region"),
        pytest.param(serving(C), candidate(A), False, id="the old slice is in another region"),
        pytest.param(attempt(A, name="other"), candidate(A), False, id="the old slice is not in the state"),
    ],
)
def test_the_old_slice_frees_what_it_uses(old: Attempt, place: Candidate, is_full: bool) -> None:
    change = replacement(None if old.name == "other" else old)
    assert (obstacle(change, table(limit(8), use(8)), old=old, places=[place]) is not None) is is_full


def test_a_zones_quota_is_not_freed_by_a_slice_in_another_zone() -> None:
    old = serving(B)
    assert obstacle(replacement(old), table(limit(8, str(A)), use(8)), old=old) is None


@pytest.mark.parametrize(
    ("before", "is_full"),
    [
        pytest.param({"tpu.type": "v6e-4"}, False, id="too small to make room"),
        pytest.param({"tpu.type": "v6e-16"}, True, id="larger than what replaces it"),
        pytest.param({"tpu.type": "v9x-8"}, False, id="of an unknown type"),
        pytest.param({}, False, id="of no type"),
    ],
)
def test_the_chips_of_the_old_slice_count(before: Mapping[str, str], is_full: bool) -> None:
    assert (obstacle(replacement(before=before), table(limit(8), use(8))) is not None) is is_full


def quota_refusal(**fields: Any) -> RefusalRecord:
    values = {"lasts": 9, "scope": RefusalScope.REGION_QUOTA, "held": 8, "message": "Exceeded: QUOTA-X.", **fields}
    return refused(values.pop("zone", A), 1, **values)


@pytest.mark.parametrize(
    ("row", "is_obstacle"),
    [
        pytest.param(quota_refusal(), True, id="it has room for what was held then"),
        pytest.param(quota_refusal(limit=8), True, id="its limit is one slice"),
        pytest.param(quota_refusal(limit=7), False, id="its limit is less: another matter"),
        pytest.param(quota_refusal(held=16), False, id="less is held now"),
        pytest.param(quota_refusal(lasts=0), False, id="it has lapsed"),
        pytest.param(quota_refusal(scope=RefusalScope.PAIR), False, id="a place that was full"),
        pytest.param(quota_refusal(zone=C), False, id="a quota of another region"),
    ],
)
def test_a_quota_that_refused_a_short_while_ago(row: RefusalRecord, is_obstacle: bool) -> None:
    why = "us-east5-a refused, for its quota is full (Exceeded: QUOTA-X)." if is_obstacle else None
    assert obstacle(replacement(), table(), refusals=[refused(A), row]) == why


def test_without_a_limit_the_old_slices_chips_are_what_a_refusal_leaves() -> None:
    small = serving(A, spec={"tpu.type": "v6e-4"})
    change = replacement(before={"tpu.type": "v6e-4"})
    assert obstacle(change, table(), old=small, refusals=[quota_refusal(held=4)]) is None


@pytest.mark.parametrize(
    ("model", "reservation", "why"),
    [
        pytest.param(RESERVED, "ours", "nothing shows that ours has room for both.", id="the same reservation"),
        pytest.param(RESERVED, "another", None, id="another reservation"),
        pytest.param(SPOT, "ours", None, id="another model"),
    ],
)
def test_a_reservation_does_not_say_whether_it_has_room(model: Any, reservation: str, why: str | None) -> None:
    change = replacement(before={**SPEC, "placement.reservation": "ours"})
    assert obstacle(change, table(), places=[candidate(A, model)], reservation=reservation) == why


@pytest.mark.parametrize(
    ("places", "why"),
    [
        pytest.param([candidate(A), candidate(B)], FULL, id="each reason once"),
        pytest.param([candidate(A), candidate(C)], None, id="room in one of the places"),
        pytest.param([], None, id="no place at all: another matter"),
    ],
)
def test_room_in_one_place_is_enough(places: list[Candidate], why: str | None) -> None:
    assert obstacle(replacement(), table(limit(8), use(8)), places=places) == why


def test_several_reasons_are_all_named() -> None:
    quotas = table(limit(8, str(A)), limit(8), use(8))
    found = obstacle(replacement(), quotas, places=[candidate(A), candidate(B)])
    assert found == f"us-east5-a{FULL.removeprefix('us-east5').removesuffix('.')}; {FULL}"


KEYS = ("lifecycle.replace", "lifecycle.update", "lifecycle.on_run_end")
ORIGINS = {key: Location(file="p.yaml", line=number, column=1) for number, key in enumerate(KEYS, 1)}
IN_PLACE = "lifecycle.update: in-place restarts the server on the chips that it has.\nNothing then serves for"
DESTROY_FIRST = (
    "lifecycle.replace: destroy-before-create releases the old slice first.\n"
    "Nothing then serves during the wait for chips, and for"
)


@pytest.mark.parametrize(
    ("fields", "key", "hint"),
    [
        pytest.param({}, KEYS[0], f"{DESTROY_FIRST} the time of a start more.", id="another slice"),
        pytest.param(
            {"start_seconds_after": 1838.0}, KEYS[0], f"{DESTROY_FIRST} about 31 min more.", id="its start is predicted"
        ),
        pytest.param({"hands_over": True}, KEYS[1], f"{IN_PLACE} the time of a start.", id="a change of the server"),
        pytest.param(
            {"hands_over": True, "start_seconds_after": 9.0},
            KEYS[1],
            f"{IN_PLACE} about 1 min.",
            id="a minute at least",
        ),
    ],
)
def test_the_error_names_the_key_and_the_way_out(fields: Mapping[str, Any], key: str, hint: str) -> None:
    (problem,) = problems(replacement(**fields), table(limit(8), use(8)), origins=ORIGINS)
    assert problem == Diagnostic(
        code="TPU3021",
        message=f"gemma[0] cannot be replaced before its slice is deleted: {FULL}",
        path=key,
        location=ORIGINS[key],
        hint=hint,
    )
    assert problem.code in EXPLANATIONS


def test_a_run_that_ends_is_a_warning_for_it_ends_anyway() -> None:
    (problem,) = problems(replacement(run_ends_at=NOW, hands_over=True), table(limit(8), use(8)), origins=ORIGINS)
    assert problem == Diagnostic(
        code="TPU3021",
        message=f"gemma[0] will find no successor before its run ends: {FULL}",
        severity=Severity.WARNING,
        path=KEYS[2],
        location=ORIGINS[KEYS[2]],
        hint="It is requested all the same, and granted once there is room: nothing serves from the end of the run until "
        "then.",
    )


def test_a_replica_is_held_against_its_own_record() -> None:
    assert obstacle(replacement(replica=1), table(limit(8), use(8))) is None
    assert obstacle(replacement(create_before_destroy=False), table(limit(8), use(8))) is None


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], (Fill.UNKNOWN, None, 0, None, 0), id="nothing is known"),
        pytest.param([limit(16), limit(8, str(A))], (Fill.ENOUGH, 8, 0, 16, 0), id="both limits, and no use"),
        pytest.param([limit(16), limit(9, "")], (Fill.ENOUGH, 9, 0, 16, 0), id="the limit of all zones"),
        pytest.param([limit(9, ""), limit(8, str(A)), limit(16)], (Fill.ENOUGH, 8, 0, 16, 0), id="its own limit first"),
        pytest.param([limit(16)], (Fill.UNKNOWN, None, 0, 16, 0), id="one limit is not known"),
        pytest.param([limit(7), limit(8, str(A))], (Fill.SHORT, 8, 0, 7, 0), id="the region has too few"),
        pytest.param([limit(16), limit(7, str(A))], (Fill.SHORT, 7, 0, 16, 0), id="the zone has too few"),
        pytest.param([limit(7)], (Fill.SHORT, None, 0, 7, 0), id="too few, whatever else is not known"),
        pytest.param([limit(0)], (Fill.NONE, None, 0, 0, 0), id="none at all"),
        pytest.param([limit(0), limit(7, str(A))], (Fill.NONE, 7, 0, 0, 0), id="none comes before too few"),
        pytest.param(
            [limit(16), limit(16, str(A)), use(8), use(1, B), use(2, C)], (Fill.SHORT, 16, 8, 16, 9), id="what is used"
        ),
        pytest.param(
            [limit(UNLIMITED), limit(UNLIMITED, str(A)), use(99)], (Fill.ENOUGH, -1, 99, -1, 99), id="no limits"
        ),
        pytest.param([limit(0, pool=DEMAND), use(5, pool=DEMAND)], (Fill.UNKNOWN, None, 0, None, 0), id="another pool"),
    ],
)
def test_the_room_that_a_quota_leaves(rows: list[QuotaLimit | Use], expected: tuple[Any, ...]) -> None:
    fill, zone_limit, zone_used, region_limit, region_used = expected
    assert table(*rows).quota(A, PREEMPTIBLE, chips=8) == Quota(
        fill=fill, zone_limit=zone_limit, zone_used=zone_used, region_limit=region_limit, region_used=region_used
    )


def test_an_unknown_use_counts_as_none() -> None:
    quota = table(limit(8), limit(8, str(A)), knows_uses=False).quota(A, PREEMPTIBLE, chips=8)
    assert (quota.fill, quota.zone_used, quota.region_used) == (Fill.ENOUGH, None, None)


def test_the_table_of_a_generation() -> None:
    rows = (limit(8), limit(9, generation="v5e")), (use(1), use(2, generation="v5e"))
    unknown = Unknown(because="nobody asked")
    facts = ApiFacts(offers=unknown, limits=rows[0], uses=rows[1])
    assert QuotaTable.from_facts(facts, "v6e") == table(limit(8), use(1))
    nothing = ApiFacts(offers=unknown, limits=unknown, uses=unknown)
    assert QuotaTable.from_facts(nothing, "v6e") == QuotaTable(limits=(), uses=None)


def test_a_replacement_at_the_other_api_has_a_quota_of_its_own() -> None:
    """Neither the quota of the TPU API nor its refusals count against an instance of Compute Engine."""
    full = table(limit(8), use(8))
    refusal = refused(A, lasts=3, scope=RefusalScope.REGION_QUOTA, held=8)
    assert obstacle(replacement(), full, refusals=[refusal]) is not None
    there = [candidate(A, backend=INSTANCES)]
    assert obstacle(replacement(), full, refusals=[refusal], places=there) is None
    assert obstacle(replacement(), full, refusals=[replace(refusal, backend=INSTANCES)], places=there) is None
    held = replace(refusal, backend=INSTANCES)
    old = serving(A, backend=INSTANCES)
    assert obstacle(replacement(old), full, refusals=[held], places=there, old=old) is not None
    assert obstacle(replacement(old), full, places=there, old=old, backend=INSTANCES) is not None
    assert obstacle(replacement(old), full, places=there, old=old) is None
    assert obstacle(replacement(), full, backend=INSTANCES) is None
