"""What Google takes back, lets go on for ever, or will not delete: given up in time, and asked for again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from command_line import Open
from stories.hunts import APPLY, CENTRAL, WEST, A, B, heals, heard, holds, hunt, lose


def test_taken_back_while_it_is_provisioned_the_spare_keeps_its_place_and_all_others_are_asked(cli: Open) -> None:
    loops = {"fault": "provisioning-loop", "zone": A, "for": 100, "attempt": 1}
    at = cli(trouble=[loops, *({"fault": "timings", "zone": zone, "waiting": 5000} for zone in (B, WEST, CENTRAL))])
    at.write(hunt(A, B, WEST, CENTRAL))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert "SUSPENDED: nothing runs there, but it uses quota" in applied.err
    # A says why only at the end; until then the others are asked, and for a while after.
    assert at.requested_zones() == [A, B, WEST, CENTRAL, WEST, CENTRAL]
    holds(at)


def test_a_zone_that_takes_a_slice_back_while_it_boots_is_not_asked_again_for_hours(cli: Open) -> None:
    preemption = {"fault": "preempt", "zone": WEST, "after": 60, "attempt": 1}
    full = {"fault": "stockout", "zone": "us-*", "times": 3}
    at = cli(trouble=[preemption, full], boot={"boot_seconds": 300})
    at.write(hunt(A, B, CENTRAL, WEST))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert applied.err.count("Serving at") == 1
    assert at.requested_zones()[:4] == [A, B, CENTRAL, WEST]
    assert WEST not in at.requested_zones()[4:]
    assert f"Failed landing in {WEST}, spot (preempted); next attempt there in 2h" in applied.err
    holds(at)


def test_taken_back_while_it_serves_the_plan_says_so_and_apply_asks_in_its_zone_first(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": A, "times": 1}, {"fault": "stockout", "zone": B, "times": 1}])
    at.write(hunt(A, B, WEST))
    assert at.run(*APPLY).code == 0
    at.clock.sleep(1800)  # lost sooner, its zone would no longer come first
    lose(at)
    planned = at.run("plan", "gemma.yaml", "-detailed-exitcode")
    assert planned.code == 2
    assert "its slice was preempted, failed, or reached the end of its run" in planned.out
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [A, B, WEST, WEST, A, B]
    holds(at)


def test_a_flex_start_run_says_when_it_ends_and_after_that_its_husk_is_removed_and_its_zone_asked_first(
    cli: Open,
) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": A, "times": 1}])
    at.write(hunt(A, B, models="flex-start"))
    assert "Google deletes the machine 4h 0m after the grant" in at.run("plan", "gemma.yaml").words
    assert at.run(*APPLY).code == 0
    assert "ends in 3h 5" in at.run("status", "gemma.yaml").words
    at.clock.sleep(5 * 3600)
    assert list(at.slices.values()) == ["SUSPENDED"]
    status = at.run("status", "gemma.yaml").words
    assert "dead: nothing runs there, but it uses quota" in status
    assert "SUSPENDED" in status
    assert at.run(*APPLY).code == 0
    assert at.requested_zones() == [A, B, B, A]
    holds(at)


# What lasts too long in A, after how many seconds it is given up, and the words and the kind of that.
STUCK: Mapping[str, tuple[Mapping[str, Any], float, str, str]] = {
    "received": ({"fault": "timings", "queued": 1500}, 900, "still CREATING after 15 min", "creating-stuck"),
    "queued": ({"fault": "overstays"}, 1320, "still WAITING_FOR_RESOURCES after 22 min", "lapsed"),
    "provisioned": (
        {"fault": "provisioning-loop", "for": 2700},
        2430,
        "still PROVISIONING after 40 min",
        "provisioning-stuck",
    ),
}


@pytest.mark.parametrize("where", STUCK)
def test_what_lasts_for_ever_is_given_up_at_its_own_deadline_and_in_its_own_words(cli: Open, where: str) -> None:
    fault, deadline, words, kind = STUCK[where]
    at = cli(trouble=[{**fault, "zone": A}, {"fault": "stockout", "zone": WEST}])
    at.write(hunt(A, WEST, more="valid_until: 20m"))
    heals(at, after=deadline + 60)
    applied = at.run(*APPLY, "--json")
    assert applied.code == 0, applied.all
    began = next(heard(applied, "requested"))["at"]
    (given_up,) = (event for event in heard(applied, "not_granted") if event["zone"] == A)
    assert (given_up["message"], given_up["kind"]) == (words, kind)
    assert deadline <= given_up["at"] - began <= deadline + 60
    holds(at)


# Why a deletion is asked for in vain: what strikes in B, and how often it is asked for before it is gone.
REFUSED: Mapping[str, tuple[Mapping[str, Any], int]] = {
    "after it was taken": ({"fault": "delete-refused", "times": 3}, 4),
    "at once": ({"fault": "unavailable", "method": "queuedResources.delete", "times": 2}, 3),
    "with a reply that is lost": ({"fault": "lost-reply", "method": "queuedResources.delete", "times": 1}, 1),
    "while it is provisioned": ({"fault": "timings", "provisioning": 200}, 4),
}


@pytest.mark.polls_every_second("the deletions that are sent are counted")
@pytest.mark.parametrize("how", REFUSED)
def test_a_deletion_that_is_refused_is_asked_for_until_nothing_is_left(cli: Open, how: str) -> None:
    fault, times = REFUSED[how]
    at = cli(jitter=0, trouble=[{**fault, "zone": B}])  # both are granted in the same second, and A is kept
    at.write(hunt(A, B))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert len([r for r in at.emulator.requests if r.method == "DELETE" and f"/{B}/" in r.path]) == times
    holds(at)


def test_one_zone_that_does_not_answer_for_long_keeps_nobody_from_the_others(cli: Open) -> None:
    down = {"fault": "unavailable", "zone": A, "method": "queuedResources.*", "attempt": "2-"}
    at = cli(trouble=[down], timings={"waiting": 500})
    at.write(hunt(A, B, WEST))
    heals(at, after=1200)
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert applied.err.count(f"Warning: {A} does not answer: ") == 1
    assert applied.err.index("Serving at") < applied.err.index("Creation complete after 2")
    assert at.requested_zones() == [A, B, WEST]
    holds(at)


def test_where_no_zone_answers_the_run_ends_and_the_next_one_goes_on(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unavailable", "method": "queuedResources.get", "times": 60}])
    at.write(hunt(A, B, WEST))
    stopped = at.run(*APPLY)
    assert stopped.code == 1
    assert "The service is currently unavailable" in stopped.err
    at.emulator._cloud.troubles.clear()
    assert at.run("apply", "gemma.yaml").code == 0
    assert at.requested_zones() == [A, B, WEST]
    holds(at)
