"""Zones that give something which does not last: the hunt goes on around them, and keeps what is better."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from command_line import Open
from stories.hunts import APPLY, CENTRAL, WEST, A, B, heard, holds, hunt

HOUR = 3600.0
LURE = {"habit": "early-preemption", "zone": A, "after": 300}
FLAPS = {"habit": "internal-error", "zone": A}
SLOW_BOOT = {"boot_seconds": 400}


def closed(*zones: str, after: float) -> list[dict[str, object]]:
    return [{"habit": "common-reopening", "zone": zone, "after": after} for zone in zones]


@pytest.mark.parametrize("requests", [1, 4])
def test_a_zone_that_preempts_within_minutes_is_asked_once_in_two_hours(cli: Open, requests: int) -> None:
    at = cli(habits=[LURE, *closed(B, WEST, after=1.8 * HOUR)], boot=SLOW_BOOT)
    at.write(hunt(A, B, WEST, requests=requests))
    began = at.clock.now()
    applied = at.run(*APPLY, "-timeout", "6h")
    assert applied.code == 0, applied.all
    assert at.clock.now() - began < 2.1 * HOUR
    assert Counter(at.requested_zones())[A] == 1
    assert f"Failed landing in {A}, spot (preempted); next attempt there in 2h" in applied.err
    assert "Google took gemma-" in applied.err
    holds(at)


def test_a_zone_that_preempts_soon_after_it_served_loses_the_next_run_too(cli: Open) -> None:
    at = cli(habits=[{**LURE, "after": 600}, *closed(B, after=HOUR)], boot={"boot_seconds": 60})
    at.write(hunt(A, B))
    assert at.run(*APPLY).code == 0
    at.clock.sleep(600)
    assert at.run(*APPLY).code == 0
    assert Counter(at.requested_zones())[A] == 1
    history = (at.folder / ".tpudeploy" / "zones-emulated.jsonl").read_text("utf-8").splitlines()
    outcomes = [tried["outcome"] for line in history if (tried := json.loads(line))["zone"] == A]
    assert outcomes == ["granted", "preempted"]
    holds(at)


def test_a_zone_that_stays_full_is_one_line_of_the_zone_history_in_ten_minutes(cli: Open) -> None:
    at = cli(habits=closed(A, B, after=HOUR))
    at.write(hunt(A, B))
    assert at.run(*APPLY).code == 0
    history = (at.folder / ".tpudeploy" / "zones-emulated.jsonl").read_text("utf-8").splitlines()
    refused = [tried for line in history if (tried := json.loads(line))["zone"] == A and tried["outcome"] == "refused"]
    assert Counter(at.requested_zones())[A] > 25
    assert 6 <= len(refused) <= 7


ONCE = {"fault": "preempt", "zone": A, "after": 100, "attempt": "1"}
CODE_13 = {"fault": "internal-error", "zone": A, "attempt": "1"}


@pytest.mark.parametrize(
    ("trouble", "hours", "zone"),
    [(ONCE, 0.1, B), (ONCE, 3, B), (ONCE, 5, A), (CODE_13, 0.1, B), (CODE_13, 1, A)],
)
def test_what_a_place_did_to_one_deployment_counts_against_it_for_the_others_and_is_forgotten(
    cli: Open, trouble: dict[str, object], hours: float, zone: str
) -> None:
    at = cli(trouble=[trouble], boot=SLOW_BOOT)
    at.write(hunt(A, B, requests=1))
    other = at.write(hunt(A, B, requests=1).replace("name: gemma", "name: other"), "other.yaml")
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [A, B]
    at.clock.sleep(hours * HOUR)
    assert at.run("apply", "-auto-approve", other).code == 0
    assert at.requested_zones() == [A, B, zone]


def test_a_lost_state_does_not_trust_a_place_anew_whose_landings_failed(cli: Open) -> None:
    at = cli(habits=[LURE], boot=SLOW_BOOT)
    at.write(hunt(A, B, requests=1))
    assert at.run(*APPLY).code == 0
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    for path in (at.folder / ".tpudeploy" / "state").rglob("gemma.json"):
        path.unlink()
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B, B]
    holds(at)


def test_with_one_zone_alone_a_preemption_is_followed_by_the_next_request_within_minutes(cli: Open) -> None:
    at = cli(trouble=[{"fault": "preempt", "after": 100, "attempt": "1-2"}], boot=SLOW_BOOT)
    at.write(hunt(A))
    began = at.clock.now()
    assert at.run(*APPLY).code == 0
    assert at.clock.now() - began < HOUR / 2
    assert at.requested_zones() == [A, A, A]
    holds(at)


def test_a_zone_that_flaps_costs_no_place_in_another_queue_once_it_has_failed(cli: Open) -> None:
    queues = [{"fault": "timings", "zone": zone, "waiting": 1.5 * HOUR} for zone in (B, WEST, CENTRAL)]
    at = cli(habits=[FLAPS], trouble=queues)
    at.write(hunt(A, B, WEST, CENTRAL))
    applied = at.run(*APPLY, "-json", "-timeout", "6h")
    assert applied.code == 0, applied.all
    failed = [event["at"] for event in heard(applied, "not_granted") if event["zone"] == A]
    given_up = [event["at"] for event in heard(applied, "released") if "about to land" in event["reason"]]
    assert 3 <= len(failed) <= 5  # in an hour and a half: the holds grow
    provisioning = [event for event in heard(applied, "phase_changed") if event["phase"] == "provisioning"]
    sound = next(event["at"] for event in provisioning if event["zone"] != A)
    assert not [at for at in given_up if failed[0] < at < sound]
    holds(at)


def test_a_slice_that_was_given_up_for_one_that_died_is_kept_after_all(cli: Open) -> None:
    lure = [{"fault": "timings", "zone": A, "provisioning": 10}, {"fault": "preempt", "zone": A, "after": 100}]
    at = cli(trouble=[*lure, {"fault": "timings", "zone": B, "provisioning": 400}], boot=SLOW_BOOT)
    at.write(hunt(A, B))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert "(another slice is kept)" in applied.err
    assert f"in {B}: the slice that was to replace it failed" in applied.err
    assert at.requested_zones() == [A, B]
    holds(at)


@pytest.mark.parametrize("outcome", ["running", "done", "failed"])
@pytest.mark.parametrize("takes_effect", [False, True])
def test_never_two_slices_and_one_in_the_end_whatever_comes_of_an_ignored_deletion(
    cli: Open, outcome: str, takes_effect: bool
) -> None:
    lure = [{"fault": "timings", "zone": A, "provisioning": 10}, {"fault": "preempt", "zone": A, "after": 100}]
    deaf = {"habit": "ignored-deletion", "zone": B, "outcome": outcome, "takes_effect": takes_effect}
    at = cli(trouble=[*lure, {"fault": "timings", "zone": B, "provisioning": 400}], habits=[deaf], boot=SLOW_BOOT)
    at.write(hunt(A, B))
    applied = at.run(*APPLY, "-timeout", "6h")
    assert applied.code == 0, applied.all
    holds(at)
