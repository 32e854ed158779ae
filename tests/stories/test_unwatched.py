"""A hunt whose run ends early, or is gone: what was asked for is found again, and nothing is granted unseen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import Open
from stories.hunts import APPLY, CENTRAL, TOKYO, WEST, A, B, gives_back, holds, hunt


def test_a_boot_that_fails_is_told_once_what_else_was_asked_for_is_gone(cli: Open) -> None:
    slow = {"fault": "timings", "zone": B, "provisioning": 240}
    at = cli(trouble=[slow, {"fault": "boot", "zone": A, "crash": "program-allocation"}])
    at.write(hunt(A, B))
    failed = at.run("apply", "-auto-approve", "gemma.yaml")
    assert failed.code == 1
    assert "gemma[0] does not serve: " in failed.err
    assert "RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure" in failed.err
    assert "another slice is kept" in failed.err
    assert list(at.slices.values()) == ["ACTIVE"]  # the one that failed: nobody would watch over another


def test_told_in_the_middle_that_only_a_person_can_help_it_watches_what_was_asked_for_before(cli: Open) -> None:
    denied = {"fault": "iam-denied", "method": "queuedResources.create", "call": 3}
    at = cli(trouble=[denied, {"fault": "timings", "zone": B, "waiting": 300}])
    at.write(hunt(A, B, WEST, TOKYO))
    granted = at.run(*APPLY)
    assert granted.code == 0, granted.all
    assert "Permission 'tpu.queuedResources.create' denied" in granted.err
    assert at.requested_zones() == [A, B, WEST]
    holds(at)


def test_and_stops_once_nothing_of_that_can_be_granted_any_more(cli: Open) -> None:
    denied = {"fault": "iam-denied", "method": "queuedResources.create", "call": 3}
    at = cli(trouble=[denied, {"fault": "wait-for-ever"}])
    at.write(hunt(A, B, WEST, TOKYO, more="valid_until: 5m"))
    stopped = at.run(*APPLY)
    assert stopped.code == 1
    assert "tpudeploy explain permission" in stopped.err
    assert at.requested_zones() == [A, B, WEST]
    assert at.slices == {}


def test_one_replica_that_cannot_go_on_stops_no_other_and_ends_the_run_once_they_serve(cli: Open) -> None:
    denied = {"fault": "iam-denied", "method": "queuedResources.create", "name": "gemma-*-1-*"}
    at = cli(trouble=[denied])
    at.write(hunt(A, B, WEST, top="replicas: 2"))
    stopped = at.run(*APPLY)
    assert stopped.code == 1
    assert stopped.err.count("The other replicas continue.") == 1
    assert "gemma[0]: Creation complete" in stopped.err
    assert "gemma[1]: Failed" in stopped.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_no_more_than_a_grant_is_waited_for_but_what_lost_against_it_is_seen_to_its_end(cli: Open) -> None:
    at = cli(trouble=[{"fault": "timings", "zone": B, "provisioning": 300}], boot={"boot_seconds": 1800})
    at.write(hunt(A, B, WEST))
    granted = at.run(*APPLY, "-wait", "granted")
    assert granted.code == 0, granted.all
    assert "In progress: gemma[0]." in granted.out
    assert "Serving" not in granted.err
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run(*APPLY).code == 0
    holds(at)


@pytest.mark.parametrize(
    ("boot", "code", "words"),
    [
        ({"boot_seconds": 0}, 1, "gemma serves, but the slices that it replaced are not deleted yet"),
        ({"hang": True}, 1, "gemma did not serve in time. The slice is kept."),
    ],
)
def test_out_of_time_with_a_slice_in_hand_it_says_so_and_names_what_has_yet_to_go(
    cli: Open, boot: Mapping[str, Any], code: int, words: str
) -> None:
    at = cli(trouble=[{"fault": "timings", "zone": B, "provisioning": 900}], boot=boot)
    at.write(hunt(A, B))
    stopped = at.run(*APPLY, "-timeout", "6m")
    assert stopped.code == code
    assert words in stopped.err
    assert f"({A}, spot): $" in stopped.err
    assert f"({B}, spot): abandoned, deletion pending" in stopped.err


# What is granted while nobody looks: after how many seconds each request is given its machine.
NEVER = 2100
GRANTS = {
    "one": {A: 300, B: NEVER, WEST: NEVER, CENTRAL: NEVER},
    "the last asked for": {A: NEVER, B: NEVER, WEST: NEVER, CENTRAL: 300},
    "two": {A: 300, B: NEVER, WEST: 400, CENTRAL: NEVER},
    "all": {A: 300, B: 300, WEST: 300, CENTRAL: 300},
    "none": {A: NEVER, B: NEVER, WEST: NEVER, CENTRAL: NEVER},
}


@pytest.mark.instant("it is killed 15 s after its start, and what is granted by then is counted")
@pytest.mark.parametrize("grants", GRANTS)
def test_killed_and_come_back_to_after_a_while_exactly_one_slice_is_kept(cli: Open, grants: str) -> None:
    after = GRANTS[grants]
    at = cli(trouble=[{"fault": "timings", "zone": zone, "waiting": after[zone]} for zone in after])
    at.write(hunt(A, B, WEST, CENTRAL))
    at.killed(15, *APPLY)
    at.clock.sleep(1800)
    assert len(at.emulator.billed()) == sum(seconds < NEVER for seconds in after.values())
    resumed = at.run("apply", "gemma.yaml")  # approved already, and no terminal to ask
    assert resumed.code == 0, resumed.all
    assert at.requested_zones() == [A, B, WEST, CENTRAL]
    holds(at)
    gives_back(at)


@pytest.mark.instant("it is killed at moments that are counted from its start")
@pytest.mark.parametrize("killed_after", [5, 15, 100, 168])
def test_destroy_in_the_middle_of_a_hunt_leaves_nothing(cli: Open, killed_after: float) -> None:
    hidden = {"fault": "hidden", "zone": B, "seconds": 70}
    at = cli(trouble=[hidden, {"fault": "timings", "zone": WEST, "waiting": 3000}])
    at.write(hunt(A, B, WEST, CENTRAL))
    at.killed(killed_after, *APPLY)
    assert len(at.slices) >= 2
    gives_back(at)
    at.clock.sleep(7200)
    assert at.slices == {}


def test_a_timeout_keeps_every_request_names_them_all_and_a_rerun_asks_for_none_again(cli: Open) -> None:
    at = cli(timings={"waiting": 600})
    at.write(hunt(A, B, WEST, CENTRAL))
    stopped = at.run(*APPLY, "-timeout", "5m")
    assert stopped.code == 12
    assert list(at.slices.values()) == ["WAITING_FOR_RESOURCES"] * 4
    assert all(f"{name} (" in stopped.err for name in at.slices)
    assert "Run `tpudeploy apply` again to continue" in stopped.err
    assert at.run("status", "gemma.yaml").words.count("waiting for chips") == 4
    resumed = at.run("apply", "gemma.yaml")
    assert resumed.code == 0, resumed.all
    assert at.requested_zones() == [A, B, WEST, CENTRAL]
    holds(at)
