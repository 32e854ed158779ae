"""Plans about a part: one replica, another slice in its place, a look that is left out."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, CommandLine, Open

TWO = PROFILE + "replicas: 2\n"
DETAILED = "-detailed-exitcode"


def _deployed(at: CommandLine, text: str = PROFILE) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def _slice_of(at: CommandLine, replica: int) -> str:
    """The one that stands."""
    (attempt,) = at.state()["records"][replica]["attempts"]
    name: str = attempt["name"]
    return name


def test_a_replacement_that_was_asked_for_creates_first_and_then_destroys(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (old,) = at.slices
    planned = at.run("plan", "-replace", "gemma[0]", profile, DETAILED)
    assert planned.code == 2
    assert "gemma[0] will be replaced, as requested" in planned.out
    assert "+/- create replacement and then destroy" in planned.words
    assert "Plan: 1 to add, 0 to change, 1 to destroy." in planned.out
    assert at.run("plan", profile, DETAILED).code == 0, "a plan leaves no trace"
    applied = at.run("apply", "-auto-approve", "-replace=gemma[0]", profile)
    assert applied.code == 0, applied.all
    (new,) = at.slices
    assert new != old
    assert applied.err.index("Requesting") < applied.err.index(f"Deleting {old}")
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_replacement_that_was_stopped_goes_on_without_being_asked_for_again(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (old,) = at.slices
    at.emulator.script({"fault": "wait-for-ever", "times": 1})
    assert at.run("apply", "-auto-approve", "-replace", "gemma", "-timeout", "10m", profile).code == 12
    assert old in at.slices
    at.emulator.script({"fault": "timings", "waiting": 1.0})
    assert "an earlier run began this" in at.run("plan", profile).words
    assert at.run("apply", "-timeout", "4h", profile).code == 0, "no question: it was approved"
    assert old not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_replacement_can_be_saved_and_applied(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (old,) = at.slices
    assert at.run("plan", "-replace", "gemma[0]", "-out", "it.plan", profile).code == 0
    (row,) = json.loads(at.run("show", "-json", "it.plan").out)["resource_changes"]
    assert (row["change"]["actions"], row["action_reason"]) == (["create", "delete"], "replace_by_request")
    assert at.run("apply", "it.plan").code == 0
    assert old not in at.slices


def test_of_several_replicas_only_the_named_one_is_replaced(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, TWO)
    first, old = _slice_of(at, 0), _slice_of(at, 1)
    assert at.run("apply", "-auto-approve", "-replace", "gemma[1]", profile).code == 0
    assert first in at.slices
    assert old not in at.slices
    assert len(at.slices) == 2


def test_prevent_destroy_stops_a_replacement_that_was_asked_for_and_a_removal(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, PROFILE + "lifecycle: {prevent_destroy: true}\n")
    for words in (("apply", "-auto-approve", "-replace", "gemma"), ("plan", "-destroy"), ("plan", "-replace", "gemma")):
        result = at.run(*words, profile)
        assert result.code == 13, result.all
        assert "gemma[0] may not be destroyed" in result.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_what_has_no_slice_yet_is_only_created(cli: Open) -> None:
    at = cli()
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in at.run("plan", "-replace", "gemma", at.write()).out


def test_a_target_leaves_the_rest_as_it_is_and_says_so(cli: Open) -> None:
    at = cli()
    profile = at.write(TWO)
    planned = at.run("plan", "-target", "gemma[1]", profile)
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in planned.out
    assert "Warning: This plan covers only what -target names. Everything else stays as it is. [TPU3020]" in planned.err
    assert json.loads(at.run("plan", "-json", "-target", "gemma[1]", profile).out)["complete"] is False
    assert at.run("apply", "-auto-approve", "-target", "gemma[1]", profile).code == 0
    assert len(at.slices) == 1
    assert "gemma[0] will be created" in at.run("plan", profile).out
    assert at.run("output", "gemma").code == 1, "the first replica is the one that clients are given"
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(at.slices) == 2


def test_a_yes_for_a_part_is_no_yes_for_the_whole(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    profile = at.write(TWO)
    assert at.run("apply", "-auto-approve", "-target", "gemma[1]", "-timeout", "5m", profile).code == 12
    request_count = len(at.requested_zones())
    result = at.run("apply", profile)
    assert result.code == 1
    assert "Approval needs an interactive terminal" in result.err
    assert len(at.requested_zones()) == request_count
    assert at.run("apply", "-target", "gemma[1]", "-timeout", "5m", profile).code == 12, "that was approved"


def test_a_yes_for_the_whole_covers_a_part_and_outlives_it(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever", "times": 2}])
    profile = at.write(TWO)
    assert at.run("apply", "-auto-approve", "-timeout", "5m", profile).code == 12
    assert at.run("apply", "-target", "gemma[0]", "-timeout", "4h", profile).code == 0
    assert at.run("apply", "-timeout", "4h", profile).code == 0
    assert list(at.slices.values()) == ["ACTIVE", "ACTIVE"]


def test_one_replica_can_be_destroyed_and_the_endpoint_of_the_first_stays(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, TWO)
    first = _slice_of(at, 0)
    before = at.run("output", "gemma", "url").out
    planned = at.run("plan", "-destroy", "-target", "gemma[1]", profile)
    assert "Plan: 0 to add, 0 to change, 1 to destroy." in planned.out
    assert "it stops taking new requests and completes in-flight ones" in planned.words
    assert "another replica serves meanwhile" in planned.words
    assert at.run("destroy", "-auto-approve", "-target", "gemma[1]", profile).code == 0
    assert list(at.slices) == [first]
    assert at.run("output", "gemma", "url").out == before
    assert at.run("output", "gemma", "replicas").out.strip() == f"[0] {before.strip()}"


def test_of_several_deployments_only_the_named_one_is_planned(cli: Open) -> None:
    at = cli()
    profiles = [at.write(PROFILE.replace("name: gemma", f"name: {n}"), f"{n}.yaml") for n in ("one", "two", "three")]
    planned = at.run("plan", "-target", "two", *profiles)
    assert "two[0] will be created" in planned.out
    assert "one[0]" not in planned.out
    assert at.run("apply", "-auto-approve", "-target", "two", *profiles).code == 0
    assert len(at.slices) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-target", "gema"), "There is no gema in this plan."),
        (("-target", "gemma[1]"), "There is no gemma[1] in this plan."),
        (("-target", "gemma[0]", "-target", "gemma[7]"), "There is no gemma[7] in this plan."),
        (("-target", "gemma[x]"), "`gemma[x]` is not an address; write NAME, or NAME[INDEX]"),
        (("-replace", "gemma[1]"), "There is no gemma[1] in this plan."),
        (("-replace", ""), "`` is not an address; write"),
        (("-destroy", "-replace", "gemma"), "-destroy and -replace cannot be combined."),
        (("-adopt", "-refresh=false"), "-adopt needs to read the cloud."),
        (("-refresh=maybe",), "`maybe` is neither true nor false"),
        (("-parallelism", "0"), "`0` is not a positive integer"),
    ],
)
def test_an_address_that_nothing_has_is_an_error(cli: Open, words: tuple[str, ...], message: str) -> None:
    at = cli()
    result = at.run("plan", at.write(), *words)
    assert result.code == 1
    assert message in result.err, result.err


def test_without_a_refresh_nothing_is_asked_of_the_cloud(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    requests = len(at.emulator.requests)
    assert at.run("plan", "-refresh=false", profile, DETAILED).code == 0
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(60)
    assert at.run("plan", "-refresh=false", profile, DETAILED).code == 0, "that it is gone is not seen"
    at.write(PROFILE.replace("16384", "8192"))
    assert "1 to restart" in at.run("plan", "-refresh=false", "-out", "it.plan", profile).out
    assert len(at.emulator.requests) == requests
    assert at.run("apply", "it.plan").code == 11, "apply looks"


def test_a_plan_without_a_refresh_can_be_applied_where_the_world_is_as_it_was(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    at.write(PROFILE.replace("16384", "8192"))
    assert at.run("plan", "-refresh=false", "-out", "it.plan", profile).code == 0
    assert at.run("apply", "it.plan").code == 0


def test_many_are_planned_side_by_side_and_told_in_the_order_they_were_named(cli: Open) -> None:
    at = cli()
    names = [f"m{number}" for number in range(6)]
    profiles = [at.write(PROFILE.replace("name: gemma", f"name: {n}"), f"{n}.yaml") for n in names]
    assert at.run("apply", "-auto-approve", "-parallelism", "3", *profiles).code == 0
    for name in names:
        at.write(PROFILE.replace("name: gemma", f"name: {name}").replace("16384", "8192"), f"{name}.yaml")
    one, many = (at.run("plan", "-parallelism", n, *profiles).out for n in ("1", "4"))
    assert one == many
    assert [one.index(f"# {name}[0]") for name in names] == sorted(one.index(f"# {name}[0]") for name in names)


@pytest.mark.parametrize("seconds", [0.5, 60, *(pytest.param(s, marks=pytest.mark.long) for s in (3, 20, 150))])
def test_a_replacement_that_is_killed_at_any_time_ends_with_one_slice_and_not_the_old(
    cli: Open, seconds: float
) -> None:
    # No neighbour takes its time: who is killed while it still plans has approved nothing.
    at = cli(boot={"boot_seconds": 200}, timings={"waiting": 60, "neighbour": 0})
    profile = _deployed(at)
    (old,) = at.slices
    at.killed(seconds, "apply", "-auto-approve", "-replace", "gemma", profile)
    resumed = at.run("apply", profile)
    assert resumed.code == 0, resumed.all
    assert old not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_replacement_under_way_that_is_asked_for_again_is_the_same_one(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    at.emulator.script({"fault": "wait-for-ever", "times": 1})
    assert at.run("apply", "-auto-approve", "-replace", "gemma", "-timeout", "5m", profile).code == 12
    before = dict(at.slices)
    assert at.run("apply", "-auto-approve", "-replace", "gemma", "-timeout", "5m", profile).code == 12
    assert dict(at.slices) == before


def test_another_approval_ends_a_replacement_that_did_not_come_about(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (old,) = at.slices
    at.emulator.script({"fault": "wait-for-ever", "times": 1})
    assert at.run("apply", "-auto-approve", "-replace", "gemma", "-timeout", "5m", profile).code == 12
    at.write(PROFILE + "  labels: {team: search}\n")
    planned = at.run("plan", profile)
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in planned.out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert dict(at.slices) == {old: "ACTIVE"}
    assert at.run("plan", profile, DETAILED).code == 0
