"""A slice that cannot be deleted yet: it is asked until it is gone, and the person reads why it is still there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import PROFILE, Open

A, B = "us-east5-a", "us-east5-b"
REFUSED = "is in state PROVISIONING and cannot be deleted"


def test_a_deletion_that_google_takes_and_then_refuses_is_told_and_asked_again(cli: Open) -> None:
    at = cli(timings={"provisioning": 1500})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-wait", "accepted", profile).code == 0
    at.clock.sleep(60)
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    (waiting, *_) = [line for line in destroyed.err.splitlines() if "Still waiting" in line]
    assert "to be gone (PROVISIONING; its deletion failed: Queued resource " in waiting
    assert REFUSED in waiting
    assert "EID" not in waiting
    assert not at.slices
    assert sum(r.method == "DELETE" for r in at.emulator.requests) > 2


def test_what_was_left_for_another_zone_is_cleared_away_once_its_state_moves(cli: Open) -> None:
    trouble = [{"fault": "internal-error", "zone": A}, {"fault": "delete-refused", "zone": A, "times": 5}]
    at = cli(trouble=trouble)
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all
    assert at.requested_zones() == [A, B]
    assert list(at.slices.values()) == ["ACTIVE"]


def test_of_two_slices_the_one_that_serves_first_is_kept_if_google_did_not_delete_it(cli: Open) -> None:
    trouble = [{"fault": "delete-refused", "zone": B}, {"fault": "boot", "zone": A, "boot_seconds": 1800}]
    at = cli(trouble=trouble, boot={"boot_seconds": 120}, jitter=0)
    began = at.clock.now()
    profile = at.write(PROFILE.replace("max_parallel_requests: 1", "max_parallel_requests: 2"))
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert f"in {B}: it serves already" in applied.err
    assert at.clock.now() - began < 1800, "it waited for the slow one"
    assert at.requested_zones() == [A, B]
    assert list(at.slices.values()) == ["ACTIVE"]
    assert B in at.run("status", profile).out


@pytest.mark.parametrize("fault", ["unavailable", "iam-denied", "connection-refused", "slow"])
def test_a_reason_that_cannot_be_looked_up_keeps_nobody_waiting(cli: Open, fault: str) -> None:
    at = cli(trouble=[{"fault": fault, "method": "operations.get"}], timings={"provisioning": 300})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-wait", "accepted", profile).code == 0
    at.clock.sleep(60)
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert "No answer" not in destroyed.err
    assert not at.slices


def test_a_serving_slice_that_will_not_go_is_told_with_the_reason_and_goes_in_the_end(cli: Open) -> None:
    at = cli(trouble=[{"fault": "delete-refused", "times": 9}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert "to be gone (ACTIVE; its deletion failed: Queued resource" in destroyed.err
    assert not at.slices


@pytest.mark.parametrize(
    "scenario", [{}, {"message": "Insufficient capacity", "code": 8}], ids=["internal", "stockout"]
)
def test_a_slice_that_was_deleted_was_not_refused_whatever_its_create_operation_says(
    cli: Open, scenario: Mapping[str, Any]
) -> None:
    at = cli(trouble=[{"fault": "operation-fails", **scenario}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    replaced = at.run("apply", "-auto-approve", profile)
    assert replaced.code == 0, replaced.all
    assert at.requested_zones() == [A, A]
    assert "Refused" not in replaced.err
    assert "Refused" not in at.run("destroy", "-auto-approve", profile).err


@pytest.mark.parametrize("seconds", [7150, 7170, 7180, 7190, 7199])
def test_a_slice_that_goes_at_the_very_end_of_the_longest_wait_is_gone(cli: Open, seconds: int) -> None:
    at = cli(jitter=0.0, timings={"deleting": seconds})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    destroyed = at.run("destroy", "-auto-approve", profile)
    if at.slices:
        assert "Still there: gemma-" in destroyed.all
    else:
        assert destroyed.code == 0, destroyed.all


def test_while_somebody_else_deletes_a_slice_a_plan_calls_it_deleted_and_not_taken_away(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.delete_by_hand(next(iter(at.slices)))
    at.clock.sleep(20)
    assert list(at.slices.values()) == ["DELETING"]
    planned = at.run("plan", profile)
    assert "deleted outside tpudeploy" in planned.out, planned.all
    assert "preempted" not in planned.out
    drift = at.run("drift", profile)
    assert drift.code == 2
    assert "DELETING: it is being deleted outside tpudeploy" in drift.out


def test_while_google_takes_a_slice_away_a_plan_does_not_call_it_deleted(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(70)
    assert list(at.slices.values()) == ["SUSPENDING"]
    planned = at.run("plan", profile)
    assert "its slice was preempted" in planned.out, planned.all
