"""Which slices take requests, by the state, the cloud and the probes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from reconcile.cases import NOW, A, B, deployment, granted, serving, slice_of

from tpudeploy.domain.life import ReleaseBegan, ReleaseWithdrawn
from tpudeploy.domain.slices import Absence, BootPhase, BootReport, Health, Observed, Phase
from tpudeploy.domain.state import Attempt, NodeChange, Record, State
from tpudeploy.domain.step import Drain, Forget, PushChange, Release, Reset, Step, Wait
from tpudeploy.reconcile.readiness import leaving_slices, ready_slices, reason_to_hold, takes_requests

UP, DOWN = Health(serving=True, detail=""), Health(serving=False, detail="no answer")
FIRST, SECOND = serving(A), serving(B)
GIVEN_UP = ReleaseBegan(releasing_at=NOW, reason="")


@pytest.mark.parametrize(
    ("one", "phase", "expected"),
    [
        pytest.param(FIRST, Phase.UP, True, id="it serves"),
        pytest.param(granted(A), Phase.UP, False, id="it never answered a completion"),
        pytest.param(serving(A, draining_at=NOW - 1), Phase.UP, False, id="it drains"),
        pytest.param(FIRST.after(GIVEN_UP), Phase.UP, False, id="it is released"),
        pytest.param(FIRST.after(GIVEN_UP, ReleaseWithdrawn()), Phase.UP, True, id="it is kept after all"),
        pytest.param(FIRST, Phase.SUSPENDING, False, id="Google takes its machine away"),
        pytest.param(FIRST, None, False, id="it is gone"),
    ],
)
def test_whether_clients_are_sent_to_a_slice(one: Attempt, phase: Phase | None, expected: bool) -> None:
    slices = {} if phase is None else {one.name: slice_of(one, phase)}
    assert takes_requests(one, Observed(at=NOW, slices=slices)) is expected


def test_clients_stay_with_a_slice_whose_zone_does_not_answer() -> None:
    assert takes_requests(FIRST, Observed(at=NOW, slices={}, unseen={FIRST.name: "no answer"}))


def test_it_stays_on_the_list_too() -> None:
    state = State(deployment="gemma", lineage="1", records=(Record(index=0, attempts=(FIRST,)),))
    assert ready_slices(state, Observed(at=NOW, slices={}, unseen={FIRST.name: "no answer"})) == {FIRST.name: 0}


@pytest.mark.parametrize(
    ("health", "leaving", "expected"),
    [
        pytest.param({FIRST.name: UP, SECOND.name: UP}, (), {FIRST.name: 0, SECOND.name: 1}, id="both answer"),
        pytest.param({FIRST.name: UP, SECOND.name: DOWN}, (), {FIRST.name: 0}, id="one answers"),
        pytest.param({FIRST.name: UP, SECOND.name: UP}, (FIRST.name,), {SECOND.name: 1}, id="one is about to leave"),
        pytest.param(
            {FIRST.name: DOWN, SECOND.name: DOWN}, (), {FIRST.name: 0, SECOND.name: 1}, id="the network fails for both"
        ),
        pytest.param({FIRST.name: DOWN}, (), {FIRST.name: 0}, id="one does not answer, and one reports another start"),
        pytest.param({}, (), {}, id="both report another start"),
    ],
)
def test_the_list_of_slices_that_take_requests(
    health: Mapping[str, Health], leaving: Collection[str], expected: Mapping[str, int]
) -> None:
    state = State(
        deployment="gemma",
        lineage="1",
        records=(Record(index=0, attempts=(FIRST,)), Record(index=1, attempts=(SECOND,))),
    )
    slices = {one.name: slice_of(one) for one in (FIRST, SECOND)}
    # A machine that reports another start is not probed.
    reports = {name: BootReport(phase=BootPhase.STARTING) for name in slices if name not in health}
    observed = Observed(at=NOW, slices=slices, health=health, reports=reports)
    assert ready_slices(state, observed, leaving) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param({FIRST.name}, {SECOND.name: 1}, id="one of two"),
        pytest.param({FIRST.name, SECOND.name}, {FIRST.name: 0, SECOND.name: 1}, id="both, which serve until the end"),
    ],
)
def test_what_google_takes_back_leaves_the_list_while_another_one_serves(
    names: Collection[str], expected: Mapping[str, int]
) -> None:
    records = (Record(index=0, attempts=(FIRST,)), Record(index=1, attempts=(SECOND,)))
    reports = {name: BootReport(phase=BootPhase.SERVING, preempted_at=NOW - 5) for name in names}
    slices = {one.name: slice_of(one) for one in (FIRST, SECOND)}
    observed = Observed(at=NOW, slices=slices, health=dict.fromkeys(slices, UP), reports=reports)
    assert ready_slices(State(deployment="gemma", lineage="1", records=records), observed) == expected


def test_without_a_profile_no_server_is_probed_and_the_list_stays() -> None:
    state = State(deployment="gemma", lineage="1", records=(Record(index=0, attempts=(FIRST,)),))
    observed = Observed(at=NOW, slices={FIRST.name: slice_of(FIRST)})
    assert ready_slices(state, observed) == {FIRST.name: 0}


# Another server than the profile's runs there again, because its node undid the change.
UNDONE = replace(serving(A, booted="previous"), is_failed=True, change=NodeChange(name="1", sent_at=NOW))


@pytest.mark.parametrize(
    ("first", "ready", "targets", "most", "expected"),
    [
        pytest.param(FIRST, {0, 2}, (0, 1, 2), 1, "", id="all others serve"),
        pytest.param(
            FIRST, {2}, (0, 1, 2), 1, "until gemma[0] serves (lifecycle.max_unavailable: 1)", id="one is absent already"
        ),
        pytest.param(FIRST, {2}, (0, 1, 2), 2, "", id="two may be absent"),
        pytest.param(
            FIRST, set(), (0, 1, 2), 2, "until gemma[0], gemma[2] serve (lifecycle.max_unavailable: 2)", id="not three"
        ),
        pytest.param(FIRST, {2}, (1,), 1, "", id="a run does not wait for a replica that it does not bring up"),
        pytest.param(
            UNDONE, {0, 2}, (0, 1, 2), 1, "because the change failed at gemma[0]", id="a change failed elsewhere"
        ),
        pytest.param(replace(UNDONE, is_failed=False), {0, 2}, (0, 1, 2), 1, "", id="a change is not known to fail"),
        pytest.param(replace(UNDONE, change=None), {0, 2}, (0, 1, 2), 1, "", id="another one never started"),
    ],
)
def test_why_the_second_replica_waits(
    first: Attempt, ready: Collection[int], targets: Collection[int], most: int, expected: str
) -> None:
    state = State(deployment="gemma", lineage="1", records=(Record(index=0, attempts=(first,)),))
    target = deployment(replicas=3, lifecycle={"max_unavailable": most})
    assert reason_to_hold(target, state, ready, 1, targets) == expected


def test_a_replica_that_is_removed_waits_until_one_that_remains_serves() -> None:
    state, target = State(deployment="gemma", lineage="1"), deployment(replicas=2)
    assert reason_to_hold(target, state, {2}, 2, (0, 1)) == "until another replica serves"
    assert reason_to_hold(target, state, {1}, 2, ()) == ""


@pytest.mark.parametrize(
    ("step", "leaves"),
    [
        pytest.param(Release(replica=0, name=FIRST.name, reason=""), True, id="it is deleted"),
        pytest.param(Forget(replica=0, name=FIRST.name, absence=Absence.GONE), True, id="it is gone"),
        pytest.param(PushChange(replica=0, name=FIRST.name, boot="1"), True, id="its server is changed"),
        pytest.param(Reset(replica=0, name=FIRST.name, boot="1"), True, id="its machine is reset"),
        pytest.param(Drain(replica=0, name=FIRST.name), True, id="it begins to drain"),
        pytest.param(Drain(replica=0, name=FIRST.name, begins=False), False, id="it comes back"),
        pytest.param(Wait(replica=0, why="UP"), False, id="it is waited for"),
    ],
)
def test_which_steps_take_a_slice_off_the_list(step: Step, leaves: bool) -> None:
    assert leaving_slices([step]) == ({FIRST.name} if leaves else set())
