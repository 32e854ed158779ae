"""The status of an attempt after one observation: each phase that the cloud can show, and each deadline. No clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    INSTANCES,
    MINUTE,
    NOW,
    PATIENCE,
    SPOT,
    TPU_API,
    A,
    attempt,
    context,
    granted,
    queued,
    refusal,
    releasing,
    serving,
    slice_of,
)

from tpudeploy.domain.deployment import Area, Provisioning
from tpudeploy.domain.slices import (
    Absence,
    BootPhase,
    BootReport,
    CreateOperation,
    Phase,
    Refusal,
    RefusalScope,
    Remedy,
)
from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile.attempt_status import AttemptStatus, Classification, classify

HIDDEN, REFUSED, WAITING = AttemptStatus.HIDDEN, AttemptStatus.REFUSED, AttemptStatus.WAITING
UP, DEAD, LEAVING, GONE = AttemptStatus.UP, AttemptStatus.DEAD, AttemptStatus.LEAVING, AttemptStatus.GONE
FULL, UNKNOWN = refusal(), refusal(is_known=False)
GRACE = PATIENCE.grace


def requested(*, seconds_ago: float, **fields: Any) -> Attempt:
    return attempt(asked_at=NOW - seconds_ago, **fields)


def released(*, seconds_ago: float = 600, **fields: Any) -> Attempt:
    return releasing(asked_at=NOW - seconds_ago, release_reason="another slice is kept", **fields)


def overdue(kind: str, message: str, *, holds: float) -> Refusal:
    return Refusal(kind=kind, message=message, remedy=Remedy.NEXT_ZONE, scope=RefusalScope.PAIR, holds_seconds=holds)


def expected_status(*, reason: str = "", **fields: Any) -> Classification:
    absence = Absence(reason) if reason in {*Absence} else None
    return Classification(reason=reason, absence=absence, **fields)


@pytest.mark.parametrize(
    ("one", "status", "reason"),
    [
        pytest.param(
            requested(seconds_ago=0), HIDDEN, "requested; not visible yet", id="a list may show a new request late"
        ),
        pytest.param(requested(seconds_ago=119), HIDDEN, "requested; not visible yet", id="until the grace is over"),
        pytest.param(requested(seconds_ago=0, seen=True), GONE, "gone", id="what the cloud has listed once is gone"),
        pytest.param(granted(), GONE, "gone", id="a slice that was granted is gone"),
        pytest.param(
            released(seconds_ago=0), HIDDEN, "requested; not visible yet", id="a released request may still appear"
        ),
        pytest.param(released(), GONE, "never appeared", id="a released request that never appeared"),
        pytest.param(released(seen=True, seconds_ago=0), GONE, "gone", id="a released slice is deleted"),
    ],
)
def test_an_attempt_that_the_cloud_does_not_show(one: Attempt, status: AttemptStatus, reason: str) -> None:
    expected = expected_status(attempt=one, status=status, slice=None, reason=reason)
    assert classify(one, context()) == expected


UNANSWERED = overdue("unanswered", "no slice appeared in the 2 min after the request", holds=GRACE)


@pytest.mark.parametrize("seconds", [120, 999])
@pytest.mark.parametrize("spec", [{}, {"placement.backend": "gce-instance"}])
def test_a_request_that_never_appeared_was_never_created_and_counts_against_its_place(
    seconds: float, spec: dict[str, str]
) -> None:
    one = requested(seconds_ago=seconds, spec=spec)
    expected = expected_status(attempt=one, status=GONE, slice=None, reason="never appeared", refusal=UNANSWERED)
    assert classify(one, context()) == expected


def test_a_request_that_never_appeared_is_told_with_the_minutes_that_were_waited() -> None:
    waited = replace(context(), patience=replace(PATIENCE, grace=2 * HOUR))
    refusal = classify(requested(seconds_ago=2 * HOUR), waited).refusal
    assert refusal is not None
    assert refusal.message == "no slice appeared in the 120 min after the request"


INSTANCE = {"placement.backend": "gce-instance"}
LAPSED = overdue("lapsed", "not granted in the 120 min that the request could wait", holds=PATIENCE.lateness)


def instance(model: Provisioning = FLEX, **fields: Any) -> Attempt:
    """An instance whose request was sent two hours ago, and could wait for as long."""
    request = {"asked_at": NOW - 2 * HOUR, "expires_at": NOW, "seen": True, "spec": INSTANCE}
    return attempt(model=model, **{**request, **fields})


@pytest.mark.parametrize(
    ("one", "refusal"),
    [
        pytest.param(instance(), LAPSED, id="an instance that waited for all of its time"),
        pytest.param(instance(expires_at=NOW + 1), None, id="somebody deleted one that still had time"),
        pytest.param(instance(expires_at=None), None, id="no time is known"),
        pytest.param(instance(spec={}), None, id="a queued resource says itself that it lapsed"),
        pytest.param(
            releasing(asked_at=NOW - 2 * HOUR, expires_at=NOW, seen=True, spec=INSTANCE), None, id="it was released"
        ),
        pytest.param(
            granted(model=FLEX, expires_at=NOW, spec=INSTANCE), None, id="it was granted, and its run has ended"
        ),
        pytest.param(granted(minutes_ago=30, spec=INSTANCE), None, id="it was granted and has lasted"),
    ],
)
def test_an_instance_that_waited_in_vain_vanishes_without_a_word(one: Attempt, refusal: Refusal | None) -> None:
    classification = classify(one, context())
    assert (classification.status, classification.reason, classification.refusal) == (GONE, "gone", refusal)


@pytest.mark.parametrize(
    ("spec", "refusal"),
    [
        pytest.param(INSTANCE, True, id="Compute Engine deletes what it preempts"),
        pytest.param({}, False, id="a queued resource stays listed, so a person deleted it"),
    ],
)
def test_a_spot_slice_that_vanishes_soon_after_its_grant(spec: Mapping[str, str], refusal: bool) -> None:
    one = granted(spec=spec)
    expected = preempted(one, 5) if refusal else None
    assert classify(one, context()) == expected_status(
        attempt=one, status=GONE, slice=None, reason="gone", refusal=expected
    )


@pytest.mark.parametrize(
    ("one", "status"),
    [
        pytest.param(queued(seen=True), WAITING, id="a request that waits keeps its place"),
        pytest.param(requested(seconds_ago=HOUR), WAITING, id="a request that never appeared may be there"),
        pytest.param(released(seen=True), LEAVING, id="a released slice is waited for"),
    ],
)
def test_an_attempt_in_a_zone_that_does_not_answer(one: Attempt, status: AttemptStatus) -> None:
    expected = expected_status(attempt=one, status=status, slice=None, reason=f"{one.zone} does not answer")
    assert classify(one, context(unseen={one.name: "503"})) == expected


@pytest.mark.parametrize(
    ("area", "text"),
    [
        pytest.param((A, TPU_API), "answers slowly", id="it rests"),
        pytest.param((A, INSTANCES), "does not answer", id="it rests at the other API"),
    ],
)
def test_a_zone_that_rests_is_not_said_to_be_silent(area: Area, text: str) -> None:
    one = requested(seconds_ago=0)
    unseen = context(unseen={one.name: "rests"}, resting={area: NOW + MINUTE})
    assert classify(one, unseen).reason == f"{one.zone} {text}"


def test_a_silent_zone_hides_only_itself() -> None:
    assert classify(granted(), context(unseen={"other": "503"})).status is GONE


@pytest.mark.parametrize(
    ("one", "answer", "status", "expected_answer"),
    [
        pytest.param(requested(seconds_ago=0), FULL, GONE, FULL, id="a known refusal creates nothing"),
        pytest.param(requested(seconds_ago=119), UNKNOWN, DEAD, UNKNOWN, id="an unknown text is not believed at once"),
        pytest.param(requested(seconds_ago=119), None, DEAD, None, id="nor is a failure without a text"),
        pytest.param(
            requested(seconds_ago=120), UNKNOWN, GONE, UNKNOWN, id="an unknown text is believed after the grace"
        ),
        pytest.param(requested(seconds_ago=120), None, GONE, None, id="a failure without a text is, too"),
        pytest.param(
            requested(seconds_ago=0, seen=True), UNKNOWN, GONE, UNKNOWN, id="what was listed leaves nothing behind"
        ),
        pytest.param(released(seconds_ago=0), FULL, REFUSED, None, id="after its release a refusal is no news"),
        pytest.param(released(seconds_ago=120), FULL, GONE, None, id="and it is forgotten after the grace"),
        pytest.param(released(seconds_ago=0, seen=True), FULL, GONE, None, id="or at once, where it was listed"),
    ],
)
def test_a_create_operation_that_failed(
    one: Attempt, answer: Refusal | None, status: AttemptStatus, expected_answer: Refusal | None
) -> None:
    current = slice_of(one, Phase.REFUSED, refusal=answer)
    expected = expected_status(attempt=one, status=status, slice=current, reason="refused", refusal=expected_answer)
    assert classify(one, context(current)) == expected


def over(seconds_ago: float) -> CreateOperation:
    return CreateOperation(ended_at=NOW - seconds_ago)


OPEN = CreateOperation()
# When an open operation of a request with an end, and of one without a queue, is over.
QUEUE_LIMIT, LIMIT = PATIENCE.lateness + GRACE, PATIENCE.creating + PATIENCE.lateness + GRACE


def of_flex(*, seconds_after_its_end: float, is_released: bool = True) -> Attempt:
    times: dict[str, Any] = {"asked_at": NOW - 2 * HOUR, "expires_at": NOW - seconds_after_its_end, "spec": INSTANCE}
    return releasing(release_reason="lapsed", **times) if is_released else attempt(model=FLEX, **times)


@pytest.mark.parametrize(
    ("one", "phase", "operation", "status", "reason"),
    [
        pytest.param(requested(seconds_ago=HOUR), Phase.QUEUED, OPEN, WAITING, "RAW", id="an open operation waits"),
        pytest.param(requested(seconds_ago=900), Phase.CREATING, OPEN, WAITING, "RAW", id="for 15 minutes elsewhere"),
        pytest.param(
            requested(seconds_ago=901),
            Phase.CREATING,
            OPEN,
            DEAD,
            "still RAW after 15 min",
            id="longer than Google takes to begin",
        ),
        pytest.param(
            of_flex(seconds_after_its_end=121, is_released=False),
            Phase.QUEUED,
            OPEN,
            DEAD,
            "still RAW after 120 min",
            id="an operation that outlives its request is a lapse",
        ),
        pytest.param(
            of_flex(seconds_after_its_end=QUEUE_LIMIT - 1),
            Phase.QUEUED,
            OPEN,
            LEAVING,
            "lapsed",
            id="its slice may still appear after the release",
        ),
        pytest.param(
            of_flex(seconds_after_its_end=QUEUE_LIMIT),
            Phase.QUEUED,
            OPEN,
            GONE,
            "never appeared",
            id="until nothing can be granted any more",
        ),
        pytest.param(
            of_flex(seconds_after_its_end=9999, is_released=False),
            Phase.QUEUED,
            OPEN,
            DEAD,
            "still RAW after 120 min",
            id="what was not released yet is released first",
        ),
        pytest.param(
            released(seconds_ago=LIMIT - 1),
            Phase.CREATING,
            OPEN,
            LEAVING,
            "another slice is kept",
            id="without a queue, it may appear until the limit",
        ),
        pytest.param(
            released(seconds_ago=LIMIT), Phase.CREATING, OPEN, GONE, "never appeared", id="and not after the limit"
        ),
        pytest.param(
            released(seconds_ago=LIMIT), Phase.QUEUED, OPEN, GONE, "never appeared", id="nor in a queue without an end"
        ),
        pytest.param(
            requested(seconds_ago=HOUR),
            Phase.CREATING,
            over(119),
            HIDDEN,
            "RAW; not visible yet",
            id="the grace begins when the operation ends",
        ),
        pytest.param(
            requested(seconds_ago=HOUR),
            Phase.CREATING,
            over(120),
            GONE,
            "never appeared",
            id="and ends some time after",
        ),
        pytest.param(
            requested(seconds_ago=60),
            Phase.CREATING,
            CreateOperation(ended_at=0.0),
            HIDDEN,
            "RAW; not visible yet",
            id="or some time after the request, where the operation does not say when it ended",
        ),
        pytest.param(
            released(), Phase.CREATING, over(119), LEAVING, "another slice is kept", id="a release waits for the same"
        ),
        pytest.param(released(), Phase.CREATING, over(120), GONE, "never appeared", id="and ends with it"),
        pytest.param(
            released(), Phase.HUSK, over(120), LEAVING, "another slice is kept", id="what a group left is deleted"
        ),
        pytest.param(
            requested(seconds_ago=HOUR),
            Phase.HUSK,
            over(120),
            DEAD,
            "RAW: nothing runs there, but it uses quota",
            id="what a group left that never appeared is released",
        ),
    ],
)
def test_a_slice_of_which_only_its_operation_is_there(
    one: Attempt, phase: Phase, operation: CreateOperation, status: AttemptStatus, reason: str
) -> None:
    current = slice_of(one, phase, operation=operation, raw_state="RAW")
    result = classify(one, context(current))
    assert (result.status, result.reason, result.slice) == (status, reason, current)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(requested(seconds_ago=HOUR), UNANSWERED, id="it was not answered"),
        pytest.param(
            attempt(model=FLEX, asked_at=NOW - 2 * HOUR, expires_at=NOW, spec=INSTANCE), LAPSED, id="it lapsed"
        ),
        pytest.param(released(), None, id="it was given up before"),
    ],
)
def test_what_the_end_of_an_operation_without_a_slice_says_of_its_place(one: Attempt, expected: Refusal | None) -> None:
    current = slice_of(one, Phase.CREATING, operation=over(GRACE))
    assert classify(one, context(current)).refusal == expected


def test_an_unknown_refusal_is_believed_some_time_after_its_operation_ended() -> None:
    one = requested(seconds_ago=HOUR)
    for seconds, status in ((119, DEAD), (120, GONE)):
        current = slice_of(one, Phase.REFUSED, refusal=UNKNOWN, operation=over(seconds))
        assert classify(one, context(current)).status is status


@pytest.mark.parametrize("phase", [Phase.HUSK, Phase.LOST])
def test_where_some_machines_run_it_is_not_said_that_nothing_does(phase: Phase) -> None:
    one = granted(model=FLEX)
    current = slice_of(one, phase, machines_running=3, raw_state="3 of 4 workers run")
    reason = "3 of 4 workers run: the slice needs all of them, and those that run are billed until it is deleted"
    assert classify(one, context(current)).reason == reason


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.REFUSED])
def test_what_was_released_leaves_whatever_the_cloud_shows(phase: Phase) -> None:
    one = released(seen=True)
    current = slice_of(one, phase, refusal=FULL)
    expected = expected_status(attempt=one, status=LEAVING, slice=current, reason="another slice is kept")
    assert classify(one, context(current)) == expected


@pytest.mark.parametrize("phase", [Phase.SUSPENDING, Phase.LEAVING])
def test_a_slice_that_goes_by_itself_leaves_without_a_reason(phase: Phase) -> None:
    one = serving()
    current = slice_of(one, phase)
    assert classify(one, context(current)) == expected_status(attempt=one, status=LEAVING, slice=current)


@pytest.mark.parametrize(
    "one", [attempt(), granted(), serving(), serving(is_lost=True)], ids=["new", "granted", "serving", "lost"]
)
def test_a_slice_that_is_up_is_up_whatever_was_recorded(one: Attempt) -> None:
    current = slice_of(one)
    assert classify(one, context(current)) == expected_status(attempt=one, status=UP, slice=current)


@pytest.mark.parametrize(
    ("seconds_ago", "status"),
    [(0, LEAVING), (299, LEAVING), (300, UP), (None, UP)],
    ids=["now", "as long as any notice lasts", "it was not taken", "no notice"],
)
def test_a_machine_that_google_takes_back_leaves_while_it_is_up(seconds_ago: int | None, status: AttemptStatus) -> None:
    one, current = serving(), slice_of(serving())
    notice = None if seconds_ago is None else NOW - seconds_ago
    reports = {one.name: BootReport(phase=BootPhase.SERVING, preempted_at=notice)}
    result = classify(one, context(current, reports=reports))
    assert result.status is status
    if status is LEAVING:
        assert result.reason == "Google is preempting it"
        assert result.slice == replace(current, raw_state="UP, being preempted")


def preempted(one: Attempt, minutes: int) -> Refusal:
    return Refusal(
        kind="preempted",
        message=f"Google took {one.name} back {minutes} min after the grant.",
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds_seconds=7200.0,
    )


YOUNG, OLD = granted(minutes_ago=5), granted(minutes_ago=45)


@pytest.mark.parametrize(
    ("one", "phase", "answer", "expected_answer"),
    [
        pytest.param(attempt(), Phase.HUSK, FULL, FULL, id="the husk of a refused request"),
        pytest.param(attempt(), Phase.HUSK, None, None, id="a husk that gives no reason"),
        pytest.param(YOUNG, Phase.HUSK, None, preempted(YOUNG, 5), id="a preemption soon after the grant"),
        pytest.param(YOUNG, Phase.LOST, None, preempted(YOUNG, 5), id="its machine is gone, and the request is listed"),
        pytest.param(YOUNG, Phase.HUSK, FULL, FULL, id="Google's own reason comes before ours"),
        pytest.param(OLD, Phase.HUSK, None, None, id="a slice that lasted says nothing against its place"),
        pytest.param(granted(model=FLEX), Phase.LOST, None, None, id="the end of a flex-start run does not either"),
    ],
)
def test_a_husk_is_dead_and_uses_quota(
    one: Attempt, phase: Phase, answer: Refusal | None, expected_answer: Refusal | None
) -> None:
    current = slice_of(one, phase, refusal=answer, raw_state="SUSPENDED")
    reason = "SUSPENDED: nothing runs there, but it uses quota"
    expected = expected_status(attempt=one, status=DEAD, slice=current, reason=reason, refusal=expected_answer)
    assert classify(one, context(current)) == expected


def landing(*, minutes_ago: float) -> Attempt:
    return attempt(seen=True, provisioning_at=NOW - minutes_ago * MINUTE, asked_at=NOW - 2 * HOUR)


def expiring(*, seconds_ago: float) -> Attempt:
    return queued(minutes_ago=120, expires_at=NOW - seconds_ago, seen=True)


@pytest.mark.parametrize(
    ("one", "phase"),
    [
        pytest.param(requested(seconds_ago=900), Phase.CREATING, id="Google takes 15 minutes to queue a large request"),
        pytest.param(queued(minutes_ago=6000), Phase.QUEUED, id="a request without an end waits for days"),
        pytest.param(expiring(seconds_ago=-1), Phase.QUEUED, id="a request waits until its end"),
        pytest.param(expiring(seconds_ago=120), Phase.QUEUED, id="and Google is late by two minutes at most"),
        pytest.param(
            landing(minutes_ago=99), Phase.QUEUED, id="a landing that Google gave up waits in its queue again"
        ),
        pytest.param(landing(minutes_ago=40), Phase.PROVISIONING, id="a machine is made within 40 minutes"),
        pytest.param(
            landing(minutes_ago=40), Phase.LOST, id="a granted node that is not visible yet is late, not lost"
        ),
        pytest.param(
            attempt(seen=True), Phase.PROVISIONING, id="the time of a landing begins when it is first observed"
        ),
        pytest.param(attempt(seen=True), Phase.LOST, id="and that of a node which was never seen, too"),
    ],
)
def test_a_request_keeps_its_place_while_it_is_in_time(one: Attempt, phase: Phase) -> None:
    current = slice_of(one, phase, raw_state="RAW")
    expected = expected_status(attempt=one, status=WAITING, slice=current, reason="RAW")
    assert classify(one, context(current)) == expected


@pytest.mark.parametrize(
    ("one", "phase", "late"),
    [
        pytest.param(
            requested(seconds_ago=901),
            Phase.CREATING,
            overdue("creating-stuck", "still RAW after 15 min", holds=120.0),
            id="Google never queued it",
        ),
        pytest.param(
            expiring(seconds_ago=121),
            Phase.QUEUED,
            overdue("lapsed", "still RAW after 120 min", holds=120.0),
            id="Google did not end it at its end",
        ),
        pytest.param(
            landing(minutes_ago=41),
            Phase.PROVISIONING,
            overdue("provisioning-stuck", "still RAW after 41 min", holds=2400.0),
            id="PROVISIONING that loops for ever",
        ),
        pytest.param(
            landing(minutes_ago=41),
            Phase.LOST,
            overdue("provisioning-stuck", "still RAW after 41 min", holds=2400.0),
            id="a node that went before it was seen",
        ),
    ],
)
def test_a_request_that_is_overdue_is_given_up_and_held_against_its_place(
    one: Attempt, phase: Phase, late: Refusal
) -> None:
    current = slice_of(one, phase, raw_state="RAW")
    expected = expected_status(attempt=one, status=DEAD, slice=current, reason=late.message, refusal=late)
    assert classify(one, context(current)) == expected


def test_a_request_that_has_an_end_is_not_overdue_while_it_lands() -> None:
    one = attempt(seen=True, provisioning_at=NOW - MINUTE, expires_at=NOW - HOUR, provisioning=SPOT)
    assert classify(one, context(slice_of(one, Phase.PROVISIONING))).status is WAITING
