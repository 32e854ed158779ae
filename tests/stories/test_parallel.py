"""A hunt in many places at once: what is granted first is kept, and of all the rest nothing is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import Open
from stories.hunts import (
    APPLY,
    CENTRAL,
    CENTRAL_B,
    CENTRAL_C,
    CHILE,
    EAST_C,
    TOKYO,
    WEST,
    A,
    B,
    gives_back,
    heard,
    holds,
    hunt,
    lose,
)

from tpudeploy import Profile, Workspace


@pytest.mark.instant("two slices are granted in the same second")
def test_of_two_granted_in_the_same_second_the_cheaper_stays_and_its_zone_is_the_home(cli: Open) -> None:
    at = cli()
    at.write(hunt(A, CENTRAL, B))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert [f"in {zone} (another slice is kept)" in applied.err for zone in (A, CENTRAL, B)] == [True, False, True]
    assert "$0.54/h" in at.run("status", "gemma.yaml").words
    holds(at)
    at.clock.sleep(1800)  # lost sooner, its zone would no longer come first
    lose(at)
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [A, CENTRAL, B, CENTRAL, A, B]
    holds(at)


@pytest.mark.instant("two slices are granted in the same second")
def test_of_two_that_cost_the_same_the_one_asked_for_earlier_stays(cli: Open) -> None:
    at = cli()
    at.write(hunt(B, A))
    assert at.run(*APPLY).code == 0
    assert f"v6e-1, {B}, spot" in at.run("status", "gemma.yaml").words
    holds(at)


@pytest.mark.instant("two slices are granted in the same second")
def test_what_serves_is_kept_against_a_cheaper_one_that_was_granted_with_it_but_does_not(cli: Open) -> None:
    at = cli(trouble=[{"fault": "boot", "zone": CENTRAL, "boot_seconds": 600}])
    at.write(hunt(A, CENTRAL))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert f"in {CENTRAL} (another slice is kept)" in applied.err
    holds(at)


@pytest.mark.parametrize("replicas", [1, 2])
def test_told_that_it_asks_too_often_the_project_asks_nothing_for_a_minute_and_goes_on_looking(
    cli: Open, replicas: int
) -> None:
    at = cli(trouble=[{"fault": "rate-limit", "call": 3}], timings={"waiting": 90})
    at.write(hunt(A, B, WEST, TOKYO, top=f"replicas: {replicas}"))
    result = at.run(*APPLY, "--json")
    assert result.code == 0, result.all
    requests = [event["at"] for event in heard(result, "requested")]
    assert requests[2] == requests[0]
    assert requests[3] >= requests[2] + 60
    assert len(requests) == 4 * replicas + 1
    times = [event["at"] for event in heard(result, "phase_changed")]
    assert len([moment for moment in times if moment < requests[3]]) == 4  # received and queued, in A and in B
    holds(at, slices=replicas)


def test_a_hunt_that_moves_on_while_its_plan_is_read_does_not_make_it_stale(cli: Open) -> None:
    at = cli(trouble=[{"fault": "timings", "zone": A, "waiting": 600}])
    at.write(hunt(A, B, WEST))
    at.killed(15, *APPLY)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")])
        at.clock.sleep(300)  # A still waits; B and WEST were granted
        assert workspace.apply(plan).error is None
    holds(at)


QUOTAS: Mapping[str, tuple[str, list[Mapping[str, Any]], list[str]]] = {
    # the profile; the limits; where it is asked: the second of each pair is refused, and the third not asked
    "of each region": (
        hunt(CENTRAL, CENTRAL_B, CENTRAL_C, A, B, EAST_C, requests=8),
        [{"class": "preemptible", "region": "*", "limit": 1}],
        [CENTRAL, CENTRAL_B, A, B],
    ),
    "of each zone": (
        hunt(A, WEST, models="spot, flex-start", requests=8),
        [{"class": "preemptible", "zone": "*", "limit": 1}],
        [A, WEST, A, WEST],
    ),
    "of each pool": (
        hunt(A, B, EAST_C, models="spot, on-demand", requests=8),
        [{"class": "preemptible", "region": "*", "limit": 1}, {"class": "on-demand", "region": "*", "limit": 1}],
        [A, B, A, B],
    ),
}


@pytest.mark.parametrize("quota", QUOTAS)
def test_where_a_quota_has_room_for_two_of_eight_requests_two_are_made_and_no_more_is_asked_there(
    cli: Open, quota: str
) -> None:
    profile, limits, requests = QUOTAS[quota]
    at = cli(quota=limits, timings={"waiting": 200})
    at.write(profile)
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert "exhausted. Limit 1 in" in applied.err
    assert at.requested_zones() == requests
    holds(at)
    gives_back(at)


def test_a_quota_that_was_full_has_room_the_moment_a_husk_of_ours_is_gone(cli: Open) -> None:
    limit = {"class": "preemptible", "region": "us-east5", "limit": 1}
    at = cli(quota=[limit], trouble=[{"fault": "stockout", "zone": A, "layer": "L3"}])
    at.write(hunt(A, B))
    applied = at.run(*APPLY, "--json")
    assert applied.code == 0, applied.all
    events = [(event["zone"], event["at"]) for event in heard(applied, "requested")]
    assert [zone for zone, _ in events] == [A, B, B]
    times = [event["at"] for event in heard(applied, "gone")]
    assert times == [events[2][1]], "B was refused for five minutes, and is asked in the look that finds the husk gone"
    holds(at)


def test_while_a_husk_of_ours_holds_a_quota_nothing_is_asked_against_it_however_long_that_takes(cli: Open) -> None:
    limit = {"class": "preemptible", "region": "us-east5", "limit": 1}
    husk = [{"fault": "stockout", "zone": A, "layer": "L3"}, {"fault": "timings", "zone": A, "deleting": 1000}]
    at = cli(quota=[limit], trouble=husk)
    at.write(hunt(A, B))
    applied = at.run(*APPLY, "--json")
    assert applied.code == 0, applied.all
    events = [(event["zone"], event["at"]) for event in heard(applied, "requested")]
    assert [zone for zone, _ in events[:3]] == [A, B, B]
    (ended_at,) = (event["at"] for event in heard(applied, "gone"))
    assert [at for _, at in events[2:] if at < ended_at] == [], "the refusal of B was to stand for five minutes"
    holds(at)


@pytest.mark.parametrize(("type_", "limit"), [("v6e-1", 0), ("v6e-8", 4)])
def test_a_quota_too_small_for_one_slice_is_asked_about_once_however_long_the_hunt(
    cli: Open, type_: str, limit: int
) -> None:
    quota = {"class": "preemptible", "region": "us-east5", "limit": limit}
    at = cli(quota=[quota], trouble=[{"fault": "stockout", "zone": WEST, "attempt": "1-12"}])
    at.write(hunt(A, B, WEST).replace("v6e-1", type_))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert at.requested_zones().count(A) == 1
    assert B not in at.requested_zones()
    assert at.requested_zones().count(WEST) == 13  # five minutes apart
    holds(at)


def test_words_that_nobody_knows_are_tried_three_times_everywhere_and_then_a_person_is_asked(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "message": "quantum flux", "code": 2, "times": 9}])
    at.write(hunt(A, B, WEST))
    stopped = at.run(*APPLY)
    assert stopped.code == 1
    assert sorted(at.requested_zones()) == sorted([A, B, WEST] * 3)
    assert stopped.err.partition("Error: ")[2].count("quantum flux") == 1
    assert at.slices == {}
    assert at.run(*APPLY).code == 0  # a person has looked
    holds(at)


@pytest.mark.parametrize("hidden", [0, 70])
def test_replies_lost_in_the_middle_of_a_fan_out_cost_no_second_request_anywhere(cli: Open, hidden: int) -> None:
    fault = {"fault": "lost-reply", "call": "3-6"}
    at = cli(trouble=[fault, {"fault": "hidden", "call": "3-6", "seconds": hidden}], timings={"waiting": 70})
    at.write(hunt(A, B, WEST, TOKYO, CHILE, CENTRAL, CENTRAL_B, CENTRAL_C, requests=8))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B, WEST, TOKYO, CHILE, CENTRAL, CENTRAL_B, CENTRAL_C]
    holds(at)
    gives_back(at)


@pytest.mark.instant("what is given back is gone when it is looked at")
def test_once_one_is_provisioned_a_single_spare_waits_on_and_all_others_are_given_back(cli: Open) -> None:
    first = {"fault": "timings", "zone": B, "waiting": 60, "provisioning": 300}
    at = cli(trouble=[first, {"fault": "timings", "waiting": 3000}])
    at.write(hunt(A, B, WEST, CENTRAL))
    stopped = at.run(*APPLY, "-timeout", "3m")
    assert stopped.code == 12
    assert stopped.err.count("another one is about to land") == 2
    assert {zone: list(slices.values()) for zone, slices in at.emulator.live().items()} == {
        A: ["WAITING_FOR_RESOURCES"],  # it was asked for first
        B: ["PROVISIONING"],
    }
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [A, B, WEST, CENTRAL]
    holds(at)


def test_a_landing_that_fails_leaves_the_spare_its_place_and_the_hunt_goes_on_beside_it(cli: Open) -> None:
    fails = {"fault": "internal-error", "zone": B, "attempt": 1}
    slow = {"fault": "timings", "zone": A, "waiting": 3000}
    at = cli(trouble=[fails, slow, {"fault": "timings", "zone": "*-?4-a", "attempt": 2, "waiting": 300}])
    at.write(hunt(A, B, WEST, CENTRAL))
    at.emulator.script({"fault": "timings", "attempt": 1, "waiting": 3000, "zone": "[!u]*"})
    at.emulator.script({"fault": "timings", "attempt": 1, "waiting": 3000, "zone": CENTRAL})
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert "an internal error has occurred" in applied.err
    assert at.requested_zones()[:6] == [A, B, WEST, CENTRAL, WEST, CENTRAL]
    assert at.requested_zones().count(A) == 1  # it held its place
    holds(at)


def test_a_queue_keeps_its_place_while_the_other_model_is_swept_beside_it(cli: Open) -> None:
    full = {"fault": "stockout", "model": "SPOT"}
    at = cli(trouble=[full, {"fault": "timings", "model": "FLEX_START", "waiting": 1500}])
    at.write(hunt(A, B, WEST, models="flex-start, spot"))
    applied = at.run(*APPLY, "--json")
    assert applied.code == 0, applied.all
    requests = [(event["zone"], event["provisioning"]) for event in heard(applied, "requested")]
    assert [zone for zone, model in requests if model == "flex-start"] == [A, B]  # half of the requests, once each
    assert requests.count((WEST, "spot")) > 5
    holds(at)
