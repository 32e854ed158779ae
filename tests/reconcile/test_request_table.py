"""What `apply` shows of each place while it searches, and how it names a request that it leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    MINUTE,
    NOW,
    SPEC,
    SPOT,
    A,
    B,
    C,
    attempt,
    budget,
    candidate,
    context,
    deployment,
    granted,
    queued,
    record,
    refusal,
    refused,
    releasing,
    serving,
    slice_of,
)

from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.names import Zone
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Phase, RefusalScope, Slice
from tpudeploy.domain.state import Attempt, RefusalRecord
from tpudeploy.domain.status import BootStage
from tpudeploy.reconcile.request_table import describe_request, request_table

ASKED = NOW - 10 * MINUTE
# What eight chips cost in that region, by the catalogue.
USD = 8 * 1.4033
CREATED: Mapping[str, Any] = {"asked_at": NOW - MINUTE, "seen": True}


def row(state: PlaceState, **fields: Any) -> PlaceStatus:
    values = {"zone": A, "provisioning": SPOT, "name": f"slice-{A}", "usd_per_hour": USD}
    return PlaceStatus(**{**values, "state": state, **fields})


def observed(one: Attempt, phase: Phase, **fields: Any) -> tuple[Attempt, Slice]:
    return one, slice_of(one, phase, raw_state=f"{phase} at Google", **fields)


@pytest.mark.parametrize(
    ("one", "slice_", "expected"),
    [
        pytest.param(
            attempt(asked_at=NOW - 5),
            None,
            row(PlaceState.ASKED, since=NOW - 5),
            id="a request that is not visible yet",
        ),
        pytest.param(
            *observed(attempt(**CREATED, expires_at=NOW + HOUR), Phase.CREATING),
            row(PlaceState.ASKED, why="creating at Google", since=NOW - MINUTE, until=NOW + HOUR),
            id="a request that Google has taken",
        ),
        pytest.param(
            *observed(attempt(**CREATED), Phase.QUEUED),
            row(PlaceState.QUEUED, why="queued at Google", since=NOW - MINUTE),
            id="a request in its queue",
        ),
        pytest.param(
            *observed(attempt(**CREATED, provisioning_at=NOW - 9), Phase.PROVISIONING),
            row(PlaceState.PROVISIONING, why="provisioning at Google", since=NOW - 9),
            id="a slice that Google makes",
        ),
        pytest.param(
            *observed(attempt(**CREATED, provisioning_at=NOW - 9), Phase.LOST),
            row(PlaceState.PROVISIONING, why="lost at Google", since=NOW - 9),
            id="a slice whose machine is late",
        ),
        pytest.param(
            *observed(granted(), Phase.UP, ends_at=NOW + HOUR),
            row(
                PlaceState.UP,
                why="up at Google",
                since=NOW - 5 * MINUTE,
                until=NOW + HOUR,
                billed_since=NOW - 5 * MINUTE,
            ),
            id="a slice that is up",
        ),
        pytest.param(
            *observed(releasing(release_reason="not needed"), Phase.QUEUED),
            row(PlaceState.LEAVING, why="not needed", since=NOW - MINUTE),
            id="a request that was given up",
        ),
        pytest.param(
            *observed(granted(), Phase.HUSK),
            row(PlaceState.LEAVING, why="husk at Google"),
            id="a slice that was taken away",
        ),
        pytest.param(
            *observed(granted(), Phase.SUSPENDING),
            row(PlaceState.LEAVING, why="suspending at Google", billed_since=NOW - 5 * MINUTE),
            id="a slice that is being taken away",
        ),
    ],
)
def test_the_row_of_a_request(one: Attempt, slice_: Slice | None, expected: PlaceStatus) -> None:
    at = context(*([] if slice_ is None else [slice_]))
    assert request_table(None, record(one), at) == (expected,)


@pytest.mark.parametrize(
    ("one", "state", "since"),
    [
        pytest.param(attempt(), PlaceState.QUEUED, ASKED, id="a request that waits"),
        pytest.param(attempt(provisioning_at=NOW - 9), PlaceState.PROVISIONING, NOW - 9, id="a slice that Google made"),
        pytest.param(releasing(), PlaceState.LEAVING, NOW - MINUTE, id="a request that was given up"),
    ],
)
def test_a_request_in_a_zone_that_does_not_answer(one: Attempt, state: PlaceState, since: float) -> None:
    expected = row(state, why=f"{A} does not answer", since=since)
    assert request_table(None, record(one), context(unseen={one.name: "503"})) == (expected,)


@pytest.mark.parametrize(
    ("report", "why"),
    [
        pytest.param(BootReport(phase=BootPhase.IMAGE, detail="40 %"), "40 %", id="its detail"),
        pytest.param(BootReport(phase=BootPhase.IMAGE), "image", id="its phase"),
    ],
)
def test_a_machine_that_reports_speaks_for_itself(report: BootReport, why: str) -> None:
    one = granted()
    (place,) = request_table(None, record(one), context(slice_of(one), reports={one.name: report}))
    assert place.why == why
    waiting = attempt(**CREATED)
    (place,) = request_table(
        None, record(waiting), context(slice_of(waiting, Phase.QUEUED), reports={waiting.name: report})
    )
    assert place.why == "QUEUED"


BOOTING = BootReport(phase=BootPhase.STARTING, detail="Compiling graph 3")
FAILED = BootReport(phase=BootPhase.FAILED, detail="It died.")


@pytest.mark.parametrize(
    ("one", "phase", "seen", "stage", "is_serving"),
    [
        pytest.param(
            granted(), Phase.UP, {"reports": BOOTING}, BootStage(name="compiling", done=3), None, id="it boots"
        ),
        pytest.param(granted(), Phase.UP, {"reports": FAILED}, BootStage(name="failed"), None, id="its boot failed"),
        pytest.param(granted(), Phase.UP, {"health": Health(serving=True, detail="")}, None, True, id="it answers"),
        pytest.param(
            granted(),
            Phase.UP,
            {"health": Health(serving=False, detail="no answer")},
            BootStage(name="unreported", left_seconds=5 * MINUTE, is_least=True),
            False,
            id="it reports nothing and does not answer",
        ),
        pytest.param(
            granted(releasing_at=NOW), Phase.UP, {"reports": BOOTING}, None, None, id="it boots, and is given up"
        ),
        pytest.param(queued(), Phase.QUEUED, {"reports": BOOTING}, None, None, id="it waits"),
    ],
)
def test_the_boot_of_a_slice(
    one: Attempt, phase: Phase, seen: Mapping[str, Any], stage: BootStage | None, is_serving: bool | None
) -> None:
    at = context(slice_of(one, phase), **{key: {one.name: value} for key, value in seen.items()})
    planned = budget(cold_seconds=10 * MINUTE) if stage is not None and stage.name == "unreported" else UNSIZED
    (place,) = request_table(deployment([candidate(A, one.provisioning)], budget=planned), record(one), at)
    assert (place.stage, place.serving) == (stage, is_serving)
    (place,) = request_table(None, record(one), at)
    assert place.stage is None, "without a deployment, nothing is known of its boot"


def test_a_place_without_a_request_has_the_price_of_the_slice_there() -> None:
    places = [candidate(A, usd=1.5), candidate(B)]
    table = request_table(deployment(places), record(refusals=[refused(A, 1, lasts=9)]), context())
    assert [(place.state, place.usd_per_hour) for place in table] == [
        (PlaceState.REFUSED, 12.0),
        (PlaceState.FREE, None),
    ]
    (place,) = request_table(deployment([candidate(B, usd=2.0)]), record(), context())
    assert place.usd_per_hour == 16.0


@pytest.mark.parametrize(
    "slice_",
    [
        pytest.param(None, id="it is gone"),
        pytest.param(slice_of(releasing(), Phase.REFUSED, refusal=refusal()), id="its request failed"),
    ],
)
def test_what_is_over_has_no_row(slice_: Slice | None) -> None:
    one = releasing(asked_at=NOW - 5) if slice_ is not None else releasing(seen=True)
    assert not request_table(None, record(one), context(*([] if slice_ is None else [slice_])))


UNSIZED = Unsized(because="its model is unknown")
FREE = PlaceStatus(zone=B, provisioning=SPOT, state=PlaceState.FREE)


@pytest.mark.parametrize(
    ("one", "phase", "is_searching"),
    [
        pytest.param(queued(), Phase.QUEUED, True, id="while a request waits"),
        pytest.param(granted(), Phase.UP, False, id="not once a slice is up"),
        pytest.param(granted(spec={**SPEC, "tpu.type": "v6e-1"}), Phase.UP, True, id="while another one is up"),
        pytest.param(granted(), Phase.HUSK, True, id="once it is taken away"),
    ],
)
def test_other_places_are_shown_while_a_slice_is_searched(one: Attempt, phase: Phase, is_searching: bool) -> None:
    places = [candidate(A, one.provisioning), candidate(B)]
    table = request_table(deployment(places), record(one), context(slice_of(one, phase)))
    assert [place.zone for place in table] == ([A, B] if is_searching else [A])
    assert FREE in table or not is_searching
    assert len(request_table(None, record(one), context(slice_of(one, phase)))) == 1


def closed(last: RefusalRecord, **fields: Any) -> PlaceStatus:
    values = {"why": last.message, "kind": last.kind, "since": last.at, "until": last.until, **fields}
    return PlaceStatus(zone=B, provisioning=SPOT, state=PlaceState.REFUSED, **values)


LONG, SHORT = refused(B, 2, lasts=9, kind="long"), refused(B, 1, lasts=3, kind="short")
REGION = refused(A, 3, lasts=30, scope=RefusalScope.REGION, kind="region")
QUOTA = refused(A, 3, lasts=30, scope=RefusalScope.REGION_QUOTA, held=8, kind="quota")
LAPSED = refused(B, 9, lasts=-1, kind="lapsed")


@pytest.mark.parametrize(
    ("refusals", "attempts", "expected"),
    [
        pytest.param([], [], FREE, id="nothing is known against it"),
        pytest.param([LONG, SHORT], [], closed(LONG), id="the refusal that holds longest"),
        pytest.param([SHORT, REGION], [], closed(REGION), id="a refusal of the whole region"),
        pytest.param([LAPSED], [], closed(LAPSED), id="a refusal that has lapsed"),
        pytest.param([LAPSED, REGION], [], closed(REGION), id="what holds now comes before what has lapsed"),
        pytest.param([refused(C, 1, lasts=9)], [], FREE, id="a refusal elsewhere says nothing"),
        pytest.param(
            [refused(B, 1, lasts=9, provisioning=FLEX)], [], FREE, id="a refusal of another model says nothing"
        ),
        pytest.param([QUOTA], [], FREE, id="a quota that we have left has room"),
        pytest.param([QUOTA], [granted(A)], closed(QUOTA), id="a quota that we still fill has none"),
    ],
)
def test_the_row_of_a_place_without_a_request(
    refusals: Sequence[RefusalRecord], attempts: Sequence[Attempt], expected: PlaceStatus
) -> None:
    state = record(*attempts, refusals=refusals)
    slices = [slice_of(a, Phase.HUSK) for a in attempts]
    assert request_table(deployment([candidate(B)]), state, context(*slices))[-1] == expected


@pytest.mark.parametrize(
    ("refusals", "minutes"),
    [
        pytest.param([], 10, id="twenty minutes after the request"),
        pytest.param([refused(B, 5)], 15, id="twenty minutes after the last refusal there"),
        pytest.param([refused(B, 5, lasts=99)], 99, id="or once the refusal ends"),
    ],
)
def test_a_place_that_a_queue_watches_opens_when_the_sweep_resumes(
    refusals: list[RefusalRecord], minutes: float
) -> None:
    places, one = [candidate(B, FLEX), candidate(B)], queued(B)
    state = record(one, refusals=refusals)
    table = request_table(deployment(places), state, context(slice_of(one, Phase.QUEUED)))
    assert (table[-1].provisioning, table[-1].until) == (SPOT, NOW + minutes * MINUTE)


def test_a_request_that_is_not_visible_yet_watches_its_zone_too() -> None:
    table = request_table(deployment([candidate(B)]), record(queued(B, minutes_ago=1)), context())
    assert table[-1].until == NOW + 19 * MINUTE


def test_a_slice_that_leaves_watches_no_zone() -> None:
    one = releasing(B, FLEX)
    table = request_table(deployment([candidate(B)]), record(one), context(slice_of(one, Phase.QUEUED)))
    assert table[-1] == FREE


RUN: Mapping[str, Any] = {"tpu.type": "v6e-1", "placement.max_run_duration": "4h"}


@pytest.mark.parametrize(
    ("one", "facts"),
    [
        pytest.param(
            attempt(expires_at=NOW + 90 * MINUTE), "lapses in 90 min; if granted, $11.23/h", id="a request that waits"
        ),
        pytest.param(
            attempt(expires_at=NOW + 2 * HOUR), "lapses in 120 min; if granted, $11.23/h", id="minutes up to two hours"
        ),
        pytest.param(attempt(expires_at=NOW + 2.6 * HOUR), "lapses in 3 h; if granted, $11.23/h", id="then hours"),
        pytest.param(attempt(expires_at=NOW - 9), "lapses in 0 min; if granted, $11.23/h", id="its end has passed"),
        pytest.param(attempt(), "if granted, $11.23/h", id="a request without an end"),
        pytest.param(attempt(A, FLEX, spec=RUN), "if granted, $1.35/h, at most $5.40 in its 4h", id="a run that ends"),
        pytest.param(
            attempt(expires_at=NOW + HOUR, provisioning_at=NOW), "if granted, $11.23/h", id="Google makes the slice"
        ),
        pytest.param(granted(expires_at=NOW + HOUR), "$11.23/h", id="a slice that was granted"),
        pytest.param(granted(Zone("xx-west1-a")), "at an unknown price", id="its price is not known"),
        pytest.param(releasing(expires_at=NOW + HOUR), "abandoned, deletion pending", id="a request that was given up"),
        pytest.param(
            serving(releasing_at=NOW),
            "abandoned, deletion pending; $11.23/h",
            id="a slice that was given up is still billed",
        ),
    ],
)
def test_how_a_request_is_named(one: Attempt, facts: str) -> None:
    assert describe_request(one, NOW) == f"{one.name} ({one.zone}, {one.provisioning}): {facts}"
