"""A hunt in many places at once: what is granted first is kept, and of all the rest nothing is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from desk import Open
from stories.hunts import APPLY, CENTRAL, TOKYO, WEST, A, B, heard, holds, hunt, lose

from tpudeploy import Profile, Workspace


def test_of_two_granted_in_the_same_second_the_cheaper_stays_and_its_zone_is_the_home(desk: Open) -> None:
    at = desk()
    at.write(hunt(A, CENTRAL, B))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert [f"in {zone} (another slice is kept)" in applied.err for zone in (A, CENTRAL, B)] == [True, False, True]
    assert "$0.54/h" in at.run("status", "gemma.yaml").words
    holds(at)
    lose(at)
    assert at.run(*APPLY).code == 0
    assert at.asked() == [A, CENTRAL, B, CENTRAL, A, B]
    holds(at)


def test_of_two_that_cost_the_same_the_one_asked_for_earlier_stays(desk: Open) -> None:
    at = desk()
    at.write(hunt(B, A))
    assert at.run(*APPLY).code == 0
    assert f"v6e-1, {B}, spot" in at.run("status", "gemma.yaml").words
    holds(at)


def test_what_serves_is_kept_against_a_cheaper_one_that_was_granted_with_it_but_does_not(desk: Open) -> None:
    at = desk(trouble=[{"fault": "boot", "zone": CENTRAL, "boot_seconds": 600}])
    at.write(hunt(A, CENTRAL))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert f"in {CENTRAL} (another slice is kept)" in applied.err
    holds(at)


def test_a_boot_that_fails_is_told_once_what_else_was_asked_for_is_gone(desk: Open) -> None:
    slow = {"fault": "timings", "zone": B, "provisioning": 900}
    at = desk(trouble=[slow, {"fault": "boot", "zone": A, "crash": "RESOURCE_EXHAUSTED"}])
    at.write(hunt(A, B))
    failed = at.run("apply", "-auto-approve", "gemma.yaml")
    assert failed.code == 1
    assert "gemma[0] does not serve: RESOURCE_EXHAUSTED" in failed.err
    assert "another slice is kept" in failed.err
    assert list(at.slices.values()) == ["ACTIVE"]  # the one that failed: nobody would watch over another


@pytest.mark.parametrize("replicas", [1, 2])
def test_told_that_it_asks_too_often_the_project_asks_nothing_for_a_minute_and_goes_on_looking(
    desk: Open, replicas: int
) -> None:
    at = desk(trouble=[{"fault": "rate-limit", "call": 3}], timings={"waiting": 300})
    at.write(hunt(A, B, WEST, TOKYO, top=f"replicas: {replicas}"))
    said = at.run(*APPLY, "--json")
    assert said.code == 0, said.all
    asked = [event["at"] for event in heard(said, "requested")]
    assert asked[2] == asked[0]
    assert asked[3] >= asked[2] + 60
    assert len(asked) == 4 * replicas + 1
    seen = [event["at"] for event in heard(said, "phase_changed")]
    assert len([moment for moment in seen if moment < asked[3]]) == 4  # received and queued, in A and in B
    holds(at, slices=replicas)


def test_told_in_the_middle_that_only_a_person_can_help_it_watches_what_was_asked_for_before(desk: Open) -> None:
    denied = {"fault": "iam-denied", "method": "queuedResources.create", "call": 3}
    at = desk(trouble=[denied, {"fault": "timings", "zone": B, "waiting": 300}])
    at.write(hunt(A, B, WEST, TOKYO))
    granted = at.run(*APPLY)
    assert granted.code == 0, granted.all
    assert "Permission 'tpu.queuedResources.create' denied" in granted.err
    assert at.asked() == [A, B, WEST]
    holds(at)


def test_and_stops_once_nothing_of_that_can_be_granted_any_more(desk: Open) -> None:
    denied = {"fault": "iam-denied", "method": "queuedResources.create", "call": 3}
    at = desk(trouble=[denied, {"fault": "wait-for-ever"}])
    at.write(hunt(A, B, WEST, TOKYO, more="valid_until: 5m"))
    stopped = at.run(*APPLY)
    assert stopped.code == 1
    assert "tpudeploy explain permission" in stopped.err
    assert at.asked() == [A, B, WEST]
    assert at.slices == {}


def test_no_more_than_a_grant_is_waited_for_but_what_lost_against_it_is_seen_to_its_end(desk: Open) -> None:
    at = desk(trouble=[{"fault": "timings", "zone": B, "provisioning": 300}], boot={"boot_seconds": 1800})
    at.write(hunt(A, B, WEST))
    granted = at.run(*APPLY, "-wait", "granted")
    assert granted.code == 0, granted.all
    assert "Under way: gemma[0]." in granted.out
    assert "Serving" not in granted.err
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run(*APPLY).code == 0
    holds(at)


@pytest.mark.parametrize(
    ("boot", "code", "words"),
    [
        ({}, 1, "gemma serves, but what was given up for it is not gone yet"),
        ({"hang": True}, 1, "gemma did not serve in time. The slice is kept."),
    ],
)
def test_out_of_time_with_a_slice_in_hand_it_says_so_and_names_what_has_yet_to_go(
    desk: Open, boot: Mapping[str, Any], code: int, words: str
) -> None:
    at = desk(trouble=[{"fault": "timings", "zone": B, "provisioning": 1800}], boot=boot)
    at.write(hunt(A, B))
    stopped = at.run(*APPLY, "-timeout", "15m")
    assert stopped.code == code
    assert words in stopped.err
    assert f"({A}, spot), " in stopped.err
    assert f"({B}, spot, given up)" in stopped.err


def test_a_hunt_that_moves_on_while_its_plan_is_read_does_not_make_it_stale(desk: Open) -> None:
    at = desk(trouble=[{"fault": "timings", "zone": A, "waiting": 600}])
    at.write(hunt(A, B, WEST))
    at.killed(15, *APPLY)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")])
        at.clock.sleep(300)  # A still waits; B and WEST were granted
        assert workspace.apply(plan).error is None
    holds(at)
