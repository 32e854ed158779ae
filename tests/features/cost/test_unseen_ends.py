"""What ends while nobody looks: the ledger closes it by Google's own times, and the next run says why it ended."""

from __future__ import annotations

import json

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

HOUR = 3600.0
APIS = {"queued resource": PROFILE, "instance": INSTANCE}
GROUP = (
    INSTANCE.replace("v6e-1", "v5p-16")
    .replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    .replace("[spot]", "[on-demand]")
)
NAMED = "Google has no record of when some slices ended"


def serving(cli: Open, profile: str, lifecycle: str = "", **scenario: object) -> CommandLine:
    at = cli(**scenario)
    at.write(f"{profile}lifecycle: {{{lifecycle}}}\n" if lifecycle else profile)
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    return at


def passes(at: CommandLine, hours: float) -> None:
    for _ in range(int(hours * 60)):
        at.clock.sleep(60.0)


def seconds(at: CommandLine) -> dict[str, tuple[float, float]]:
    """Return by slice the seconds of the ledger, and those of the bill."""
    now = at.clock.now()
    document = json.loads(at.run("cost", "-group-by", "slice", "-json").out)
    billed = {row.name: (now if row.ended is None else row.ended) - row.began for row in at.emulator.bill()}
    return {row["key"]: (row["chip_hours"] * HOUR, billed[row["key"]]) for row in document["rows"]}


def assert_same(at: CommandLine) -> None:
    for in_ledger, billed in seconds(at).values():
        assert in_ledger == pytest.approx(billed, abs=1.0)
    assert NAMED not in at.run("cost").words


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("lifecycle", ["end: 2h", "idle: 30m"])
def test_a_machine_that_deleted_itself_counts_until_then(cli: Open, api: str, lifecycle: str) -> None:
    at = serving(cli, APIS[api], lifecycle)
    passes(at, 5)
    assert not at.emulator.billed()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert not at.emulator.billed(), "it stays ended"
    assert_same(at)


@pytest.mark.parametrize("api", APIS)
def test_once_google_has_forgotten_it_counts_until_its_own_end_and_is_named(cli: Open, api: str) -> None:
    at = serving(cli, APIS[api], "end: 2h", keeps_operations=0)
    passes(at, 5)
    ended = at.run("apply", "-auto-approve", "gemma.yaml")
    assert "lifecycle.end: 2h)" in ended.words
    ((in_ledger, billed),) = seconds(at).values()
    assert billed <= in_ledger <= billed + 180.0
    assert NAMED in at.run("cost").words


@pytest.mark.parametrize("by", ["a preemption", "a person"])
@pytest.mark.parametrize("api", APIS)
def test_what_was_preempted_or_deleted_hours_ago_counts_until_then(cli: Open, api: str, by: str) -> None:
    at = serving(cli, APIS[api])
    (name,) = at.emulator.billed()
    at.clock.sleep(HOUR)
    if by == "a person" and api == "queued resource":
        at.delete_by_hand(name)
    else:
        at.emulator.preempt(name)
    passes(at, 3)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    if by == "a preemption" and api == "queued resource":
        # No operation of the TPU API tells of it.
        in_ledger, billed = seconds(at)[name]
        assert in_ledger > billed + HOUR
        assert (
            f"{NAMED}, which count until their own end, or until a run found them gone: {name}." in at.run("cost").words
        )
    else:
        assert_same(at)


def test_a_preemption_that_a_run_sees_counts_once(cli: Open) -> None:
    at = serving(cli, INSTANCE)
    at.emulator.preempt(*at.emulator.billed())
    at.clock.sleep(40.0)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert_same(at)


@pytest.mark.parametrize("text", [INSTANCE, GROUP], ids=["instance", "group"])
def test_compute_engine_tells_for_how_long_it_was_idle(cli: Open, text: str) -> None:
    at = serving(cli, text, "idle: 30m")
    passes(at, 5)
    plan = at.run("plan", "gemma.yaml")
    assert "lifecycle.idle: 30m; idle for 30 min; its machine deleted itself" in plan.words


def test_the_tpu_api_does_not_and_a_plan_says_what_is_deduced(cli: Open) -> None:
    at = serving(cli, PROFILE, "idle: 30m")
    passes(at, 5)
    plan = at.run("plan", "gemma.yaml")
    assert "lifecycle.idle: 30m; deduced, because its machine was deleted at 14:" in plan.words
    assert "by Google's times" in plan.words


@pytest.mark.parametrize(
    ("api", "how"), [("instance", "its machine deleted itself at"), ("queued resource", "gone at")]
)
def test_an_end_is_told_with_the_time_at_which_the_machine_went(cli: Open, api: str, how: str) -> None:
    at = serving(cli, APIS[api], "end: 2h")
    passes(at, 5)
    assert f"lifecycle.end: 2h; {how} 16:" in at.run("apply", "-auto-approve", "gemma.yaml").words


@pytest.mark.parametrize("api", APIS)
def test_what_was_idle_before_its_end_has_ended_for_idleness_whenever_the_next_run_looks(cli: Open, api: str) -> None:
    at = serving(cli, APIS[api], "end: 2h, idle: 30m")
    passes(at, 5)
    assert "1 may still run" in at.run("cost").words
    status = at.run("status", "gemma.yaml")
    assert "gemma ended at 2026-09-21 14:" in status.words
    assert "(lifecycle.idle: 30m; " in status.words
    assert_same(at)
    assert "still run" not in at.run("cost").words
    assert "(lifecycle.idle: 30m; " in at.run("apply", "-auto-approve", "gemma.yaml").words
    assert_same(at)


@pytest.mark.parametrize("keeps", [0, 1e9])
@pytest.mark.parametrize("api", APIS)
def test_what_is_preempted_or_deleted_by_hand_while_it_is_used_is_requested_again_hours_later(
    cli: Open, api: str, keeps: float
) -> None:
    at = serving(cli, APIS[api], "idle: 2h", keeps_operations=keeps)
    (name,) = at.emulator.billed()
    at.clock.sleep(300.0)
    if api == "queued resource":
        at.delete_by_hand(name)
    else:
        at.emulator.preempt(name)
    passes(at, 4)
    is_deduced = api == "queued resource" and not keeps  # nothing tells it from a machine that was idle
    assert ("1 to add" in at.run("plan", "gemma.yaml").out) is not is_deduced


def test_a_slice_that_no_run_saw_counts_from_its_request_until_it_was_found_gone(cli: Open) -> None:
    at = cli(keeps_operations=False)
    at.write(f"{PROFILE}lifecycle: {{end: 1h}}\n")
    at.left_or_killed(60.0, "apply", "-auto-approve", "gemma.yaml")
    for _ in range(180):
        at.clock.sleep(60.0)  # its machine looks each minute
    (billed,) = at.emulator.bill()
    assert billed.ended is not None
    at.run("apply", "-auto-approve", "-timeout", "10m", "gemma.yaml")
    rows = json.loads(at.run("cost", "-group-by", "slice", "-json").out)["rows"]
    hours = {row["key"]: row["chip_hours"] for row in rows}
    assert hours[billed.name] * 3600 >= billed.ended - billed.began


@pytest.mark.parametrize("seconds", [45.0, 60.0])
def test_a_request_that_google_refused_while_no_run_looked_costs_nothing(cli: Open, seconds: float) -> None:
    at = cli(keeps_operations=False, trouble=[{"fault": "stockout", "zone": "*"}])
    at.write(f"{PROFILE}lifecycle: {{end: 1h}}\n")
    at.left_or_killed(seconds, "apply", "-auto-approve", "gemma.yaml")
    at.clock.sleep(HOUR)
    at.run("apply", "-auto-approve", "-timeout", "3m", "gemma.yaml")
    assert at.emulator.bill() == ()
    assert json.loads(at.run("cost", "-group-by", "slice", "-json").out)["rows"] == []
