"""When a second slice takes over from one that serves, and when the old one may go. No cloud, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from reconcile.cases import (
    FLEX,
    HOUR,
    NOW,
    PATIENCE,
    SPEC,
    SPOT,
    A,
    B,
    attempt,
    budget,
    context,
    deployment,
    granted,
    record,
    serving,
    slice_of,
)

from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.reconcile.attempt_status import classify
from tpudeploy.reconcile.cutover import (
    can_take_clients,
    drain_seconds_left,
    ends_within_drain,
    failed_cutover,
    is_blue_green_change,
    is_handed_over,
    mark_as_ending,
    needs_successor,
    run_end,
    slices_needing_successors,
    with_drain,
)
from tpudeploy.reconcile.rollout import ServerStatus

UP = Health(serving=True, detail="")
BLUE_GREEN, RENEWED = {"blue_green": True}, {"renew": True}
# A run of ten hours, and the slice that it is the run of.
RUN = {**SPEC, "placement.max_run_duration": "10h"}


def limited(*, hours_ago: float = 1, **fields: Any) -> Attempt:
    return serving(A, FLEX, minutes_ago=hours_ago * 60, **{"spec": RUN, **fields})


@pytest.mark.parametrize(
    ("lifecycle", "one", "changed", "handed_over"),
    [
        pytest.param(BLUE_GREEN, serving(booted="other"), True, True, id="another server than the profile's"),
        pytest.param(BLUE_GREEN, serving(), False, False, id="the profile's server"),
        pytest.param(
            BLUE_GREEN, serving(booted="other", served=False), False, False, id="no client was ever sent there"
        ),
        pytest.param(
            BLUE_GREEN, serving(boot_asked=False), True, True, id="a restart that was saved, and not requested"
        ),
        pytest.param({}, serving(booted="other"), False, False, id="in place"),
        pytest.param(RENEWED, serving(is_ending=True), False, True, id="its run ends, and is renewed"),
        pytest.param({}, serving(is_ending=True), False, False, id="its run ends, and is not renewed"),
        pytest.param(RENEWED, serving(), False, False, id="its run does not end yet"),
    ],
)
def test_whether_a_second_slice_takes_over(
    lifecycle: Mapping[str, bool], one: Attempt, changed: bool, handed_over: bool
) -> None:
    target = deployment(lifecycle=lifecycle)
    assert (is_blue_green_change(target, one), is_handed_over(target, one)) == (changed, handed_over)


@pytest.mark.parametrize(
    ("since", "running", "seconds"),
    [
        pytest.param(None, 0, 60, id="clients have just been sent away"),
        pytest.param(10, 0, 50, id="until no client can use the endpoint that it has read"),
        pytest.param(60, 0, 0, id="no client can use it any more"),
        pytest.param(99, 0, 0, id="and later"),
        pytest.param(10, 3, 890, id="its requests get fifteen minutes"),
        pytest.param(60, 3, 840, id="also after the last client has gone"),
        pytest.param(900, 3, 0, id="but not more"),
        pytest.param(999, 3, 0, id="and never less than none"),
    ],
)
def test_how_long_a_slice_drains(since: float | None, running: int, seconds: float) -> None:
    one = serving(draining_at=None if since is None else NOW - since)
    assert drain_seconds_left(one, context(running={one.name: running, "other": 9})) == seconds


@pytest.mark.parametrize(
    ("health", "phase", "seconds"),
    [
        pytest.param(UP, BootPhase.SERVING, 900, id="it answers, and its metrics do not"),
        pytest.param(None, BootPhase.SERVING, 900, id="it was not probed, and its machine says that it serves"),
        pytest.param(None, BootPhase.STARTING, 60, id="its machine starts another server"),
        pytest.param(replace(UP, serving=False), BootPhase.SERVING, 60, id="it does not answer"),
    ],
)
def test_how_long_a_slice_drains_whose_requests_are_not_known(
    health: Health | None, phase: BootPhase, seconds: float
) -> None:
    one = serving(draining_at=NOW)
    at = context(health={} if health is None else {one.name: health}, reports={one.name: BootReport(phase=phase)})
    assert drain_seconds_left(one, at) == seconds


@pytest.mark.parametrize(
    ("profile", "applied", "seconds"),
    [
        pytest.param({"drain_seconds": 120.0}, {}, 120, id="the profile's"),
        pytest.param({}, {"lifecycle.drain_timeout": "2m"}, 900, id="the profile's, which no longer has one"),
        pytest.param(None, {"lifecycle.drain_timeout": "2m"}, 120, id="that of what is removed"),
        pytest.param(None, {}, 900, id="removed, and without one"),
    ],
)
def test_the_longest_drain(profile: Mapping[str, Any] | None, applied: Mapping[str, Any], seconds: float) -> None:
    state = State(deployment="gemma", lineage="l", records=(record(serving(spec={**SPEC, **applied}), serving(B)),))
    target = None if profile is None else deployment(lifecycle=profile)
    assert with_drain(PATIENCE, target, state).drained == seconds


def test_a_slice_drains_for_as_long_as_clients_keep_its_endpoint_though_its_requests_would_get_less() -> None:
    one = serving(draining_at=NOW)
    at = context(running={one.name: 1})
    assert drain_seconds_left(one, replace(at, patience=replace(at.patience, drained=5.0))) == 60
    assert (
        drain_seconds_left(one, replace(context(running={one.name: 0}), patience=replace(at.patience, held=0.0))) == 0
    )


@pytest.mark.parametrize(
    ("one", "phase", "health", "expected"),
    [
        pytest.param(serving(), Phase.UP, UP, True, id="it serves, and clients know it"),
        pytest.param(serving(served=False), Phase.UP, UP, False, id="clients were never sent there"),
        pytest.param(serving(), Phase.UP, replace(UP, serving=False), False, id="it does not answer"),
        pytest.param(serving(), Phase.UP, None, False, id="it was not probed"),
        pytest.param(serving(), Phase.HUSK, UP, False, id="it is gone"),
    ],
)
def test_whether_clients_can_be_sent_there(one: Attempt, phase: Phase, health: Health | None, expected: bool) -> None:
    at = context(slice_of(one, phase), health={} if health is None else {one.name: health})
    assert can_take_clients(classify(one, at), at) is expected


@pytest.mark.parametrize(
    ("one", "ends_at", "hours"),
    [
        pytest.param(limited(), NOW + HOUR, 1, id="as Google says"),
        pytest.param(limited(), None, 9, id="ten hours after the grant, where Google does not say it"),
        pytest.param(serving(), None, None, id="never, where the profile sets no end"),
        pytest.param(attempt(A, FLEX, spec=RUN), None, None, id="unknown before the grant"),
    ],
)
def test_when_a_run_ends(one: Attempt, ends_at: float | None, hours: float | None) -> None:
    end = None if hours is None else NOW + hours * HOUR
    assert run_end(one, context(slice_of(one, ends_at=ends_at))) == end
    if ends_at is None:
        assert run_end(one, context()) == end


# The lead of a cutover: an hour for a slice, fifteen minutes for a start, fifteen for the drain.
@pytest.mark.parametrize(
    ("one", "lifecycle", "longest_wait", "expected"),
    [
        pytest.param(limited(hours_ago=8.5), RENEWED, 0, True, id="an hour and a half before the end"),
        pytest.param(limited(hours_ago=8.49), RENEWED, 0, False, id="not sooner"),
        pytest.param(limited(hours_ago=8.49), RENEWED, 2 * HOUR, True, id="sooner, where a grant took two hours"),
        pytest.param(limited(hours_ago=5), RENEWED, 99 * HOUR, True, id="from the half of the run at the earliest"),
        pytest.param(limited(hours_ago=4.99), RENEWED, 99 * HOUR, False, id="not in the first half of the run"),
        pytest.param(limited(hours_ago=9), {}, 0, False, id="the profile does not renew"),
        pytest.param(limited(hours_ago=9, served=False), RENEWED, 0, False, id="no client uses it"),
        pytest.param(serving(), RENEWED, 0, False, id="its run does not end"),
    ],
)
def test_whether_a_successor_is_due(
    one: Attempt, lifecycle: Mapping[str, bool], longest_wait: float, expected: bool
) -> None:
    at = context(slice_of(one), acquisition=longest_wait)
    assert needs_successor(deployment(lifecycle=lifecycle), one, at) is expected


def test_the_start_that_the_sizing_predicts_is_a_part_of_the_lead() -> None:
    target = deployment(lifecycle=RENEWED, budget=budget(cold_seconds=HOUR))
    due = [needs_successor(target, one, context()) for one in (limited(hours_ago=7.75), limited(hours_ago=7.74))]
    assert due == [True, False]


def test_no_successor_is_due_where_the_profile_set_no_limit_whatever_google_shows() -> None:
    one = serving()
    assert not needs_successor(deployment(lifecycle=RENEWED), one, context(slice_of(one, ends_at=NOW)))


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        pytest.param(16, True, id="its last requests may just end: fifteen minutes, and one without new ones"),
        pytest.param(16.01, False, id="they end before it does"),
        pytest.param(14.5, True, id="the minute without new ones comes first"),
        pytest.param(-1, True, id="it is over"),
        pytest.param(None, False, id="its run does not end"),
    ],
)
def test_whether_a_run_ends_before_its_last_requests(minutes: float | None, expected: bool) -> None:
    one = serving(A)
    ends_at = None if minutes is None else NOW + minutes * 60
    assert ends_within_drain(one, context(slice_of(one, ends_at=ends_at))) is expected


def state(*attempts: Attempt) -> State:
    return State(deployment="gemma", lineage="0" * 32, records=(record(*attempts), record(index=1)))


@pytest.mark.parametrize(
    ("one", "phase", "due"),
    [
        pytest.param(limited(hours_ago=9), Phase.UP, True, id="its run is about to end"),
        pytest.param(limited(hours_ago=1), Phase.UP, False, id="its run has just begun"),
        pytest.param(limited(hours_ago=1, is_ending=True), Phase.UP, True, id="a successor was due before"),
        pytest.param(limited(hours_ago=9, draining_at=NOW), Phase.UP, False, id="its successor serves"),
        pytest.param(limited(hours_ago=9), Phase.HUSK, False, id="it is gone"),
    ],
)
def test_the_slices_that_need_successors(one: Attempt, phase: Phase, due: bool) -> None:
    names = slices_needing_successors(deployment(lifecycle=RENEWED), state(one), context(slice_of(one, phase)))
    assert names == ((one.name,) if due else ())


def test_successors_may_be_requested_for_the_marked_slices_and_no_others() -> None:
    first, second, marked = serving(A), serving(B), serving(Zone("us-west1-c"), is_ending=True)
    before = state(first, second, marked)
    after = mark_as_ending(before, {first.name, marked.name})
    assert [a.is_ending for a in after.attempts] == [True, False, True]
    assert (mark_as_ending(before, ()), len(after.records)) == (before, 2)


@pytest.mark.parametrize(
    ("lifecycle", "new", "cost", "next_step"),
    [
        pytest.param(
            {},
            granted(B),
            "at about $22.45/h together",
            "Run `tpudeploy apply` again: it starts the new one again, as the profile then says.",
            id="another slice",
        ),
        pytest.param(
            BLUE_GREEN,
            granted(Zone("xx-west1-a")),
            "at an unknown price",
            "Fix the cause and run `tpudeploy apply` again: it continues with the new one. Undo the change instead, and "
            "it releases the new one.",
            id="a change of the server, at a price that is not known",
        ),
    ],
)
def test_what_is_said_of_a_cutover_that_failed(
    lifecycle: Mapping[str, bool], new: Attempt, cost: str, next_step: str
) -> None:
    old = serving(booted="other")
    standing = ServerStatus(
        deployment=deployment(lifecycle=lifecycle), replica=3, attempt=new, context=context(slice_of(new))
    )
    error = failed_cutover(standing, old, cause="it broke")
    assert error.message == (
        "gemma[3] does not serve on its new slice: it broke\n"
        f"gemma[3] serves as before: {old.name} was not changed, and clients are still sent there."
    )
    assert error.hint == f"The new slice {new.name} in {new.zone} is kept. Both are billed, {cost}.\n{next_step}"


def test_the_price_of_the_old_slice_may_be_the_unknown_one() -> None:
    new, old = granted(A, SPOT), serving(Zone("xx-west1-a"))
    standing = ServerStatus(deployment=deployment(), replica=0, attempt=new, context=context(slice_of(new)))
    assert "Both are billed, at an unknown price." in failed_cutover(standing, old, cause="").hint
