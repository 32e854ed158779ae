"""`lifecycle.on_run_end: renew`: the successor of a slice whose run ends takes over before, and clients never notice."""

from __future__ import annotations

import json

import pytest
from clients import Client, load, lost_nothing
from command_line import PROFILE, CommandLine, Open

from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import VirtualClock

HOUR, MINUTE = 3600.0, 60.0
HELD = Patience().held
RUN = 6 * HOUR
RENEWED = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 6h") + "lifecycle: {on_run_end: renew}\n"
DETAILED = "-detailed-exitcode"
APPLY = ("apply", "-auto-approve", "gemma.yaml")


def _deployed(at: CommandLine, text: str = RENEWED) -> str:
    profile = at.write(text)
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    return profile


def _watched(at: CommandLine, seconds: float) -> str:
    """What `apply -watch` said until Ctrl-C, after so long."""
    ends = at.clock.now() + seconds

    def on_advance() -> None:
        if at.clock.now() >= ends:
            raise KeyboardInterrupt

    at.clock.on_advance.append(on_advance)
    result = at.run("apply", "-auto-approve", "-watch", "gemma.yaml")
    at.clock.on_advance.remove(on_advance)
    assert result.code == 130, result.all
    return result.err


def _sleep(clock: VirtualClock, seconds: float) -> None:
    """In steps, so that whoever watches sees time pass."""
    ends = clock.now() + seconds
    while clock.now() < ends:
        clock.sleep(min(10 * MINUTE, ends - clock.now()))


@pytest.mark.long
def test_a_watched_succession_loses_no_request_of_two_thousand(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60})
    at.write(RENEWED.replace("6h", "3h"))
    clients = [Client(at=at, each=4, waits=True), Client(at=at, each=4, holds=HELD, waits=True)]
    with load(at, *clients):
        result = _watched(at, 4 * HOUR)
    lost_nothing(clients, at_least=2000)
    assert result.count("Serving at") >= 3
    assert all(len(client.requests_by_url) >= 2 for client in clients)
    assert len(at.slices) == 1
    assert at.run("plan", "gemma.yaml", DETAILED).code == 0


@pytest.mark.long
def test_a_schedule_of_applies_loses_no_request_either(cli: Open) -> None:
    at = cli()
    _deployed(at)
    clients = [Client(at=at, each=12), Client(at=at, each=12, holds=HELD)]
    with load(at, *clients):
        for _ in range(26):
            _sleep(at.clock, 30 * MINUTE)
            applied = at.run(*APPLY)
            assert applied.code == 0, applied.all
    lost_nothing(clients, at_least=2000)
    assert 3 <= len(at.requested_zones()) <= 5, "a run is used for more than half of it, and bought once"
    assert len(at.slices) == 1


@pytest.mark.instant("the moment at which the run ends is shown to the minute")
def test_a_plan_shows_when_the_run_ends_and_what_it_costs_to_be_in_time(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    assert at.run("plan", profile, DETAILED).code == 0
    _sleep(at.clock, 5 * HOUR)
    planned = at.run("plan", profile, DETAILED)
    assert planned.code == 2
    assert "gemma[0] will be handed over to another slice" in planned.out
    assert "(its run ends, and a replacement takes over before that)" in planned.out
    assert "its run ends at 2026-09-21 20:13 UTC, even if the successor does not serve by then" in planned.words
    assert "both are billed, about" in planned.words
    (row,) = json.loads(at.run("plan", "-json", profile).out)["resource_changes"]
    assert row["action_reason"] == "replace_because_run_ends"


def test_without_it_a_run_that_ends_is_left_to_end(cli: Open) -> None:
    at = cli()
    began = at.clock.now()
    profile = _deployed(at, RENEWED.replace("renew", "release"))
    _sleep(at.clock, began + RUN - at.clock.now())  # the run began with the grant, some minutes after the apply
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_run_that_has_no_end_has_no_successor_and_that_is_said(cli: Open) -> None:
    at = cli()
    result = at.run("validate", at.write(PROFILE + "lifecycle: {on_run_end: renew}\n"))
    assert result.code == 0
    assert "gemma renews runs that end, and none does" in result.err


def test_how_early_it_is_asked_for_follows_what_a_grant_took_lately(cli: Open) -> None:
    at = cli(timings={"waiting": 2 * HOUR})
    profile = _deployed(at, RENEWED.replace("max_run", "valid_until: 4h\n  max_run"))
    _sleep(at.clock, 2 * HOUR)
    assert at.run("plan", profile, DETAILED).code == 0
    _sleep(at.clock, 1.7 * HOUR)
    assert at.run("plan", profile, DETAILED).code == 2, "two hours for a grant, a start, a drain"


def test_a_successor_that_is_asked_for_is_not_given_back_because_it_came_quickly(cli: Open) -> None:
    at = cli(timings={"waiting": 2.5 * HOUR})
    profile = _deployed(at, RENEWED.replace("max_run", "valid_until: 4h\n  max_run"))
    (old,) = at.slices
    at.emulator.script({"fault": "timings", "waiting": 1.0})
    _sleep(at.clock, 3.2 * HOUR)
    at.killed(100.0, *APPLY)
    assert len(at.slices) == 2
    assert "an earlier run began this" in at.run("plan", profile).words
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert old not in at.slices
    assert len(at.slices) == 1


def test_a_successor_that_does_not_come_in_time_is_said_and_still_asked_for(cli: Open) -> None:
    at = cli()
    _deployed(at)
    (old,) = at.slices
    at.emulator.script({"fault": "timings", "waiting": 4 * HOUR})
    at.write(RENEWED.replace("max_run", "valid_until: 8h\n  max_run"))
    assert at.run(*APPLY).code == 0
    _sleep(at.clock, 5 * HOUR)
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert f"The run of {old} ended before its replacement served" in applied.words
    assert old not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]


def test_where_there_is_no_room_for_both_the_plan_warns_and_the_successor_comes_once_there_is(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "*", "limit": 1}])
    one = RENEWED.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    profile = _deployed(at, one)
    _sleep(at.clock, 5 * HOUR)
    planned = at.run("plan", profile)
    assert planned.code == 0
    assert "Warning: gemma[0] will find no successor before its run ends: us-east5 has a quota of 1" in planned.words
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert list(at.slices.values()) == ["ACTIVE"]


def test_prevent_destroy_and_the_order_of_replacements_do_not_stop_a_succession(cli: Open) -> None:
    at = cli()
    guarded = RENEWED.replace("{on", "{prevent_destroy: true, replace: destroy-before-create, on")
    _deployed(at, guarded)
    client = Client(at=at, each=2)
    _sleep(at.clock, 5 * HOUR)
    with load(at, client):
        assert at.run(*APPLY).code == 0
    lost_nothing([client], at_least=50)
    assert len(at.slices) == 1


def test_a_pipeline_that_only_goes_on_renews_too_for_the_profile_was_approved(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (old,) = at.slices
    _sleep(at.clock, 5 * HOUR)
    resumed = at.run("ci", "apply", "-resume", profile)
    assert resumed.code == 0, resumed.all
    assert old not in at.slices
    assert len(at.slices) == 1
    assert at.run("ci", "drift", profile, DETAILED).code == 0


@pytest.mark.parametrize(
    "change",
    [("16384", "8192"), ("v6e-1", "v6e-4"), ("renew", "release"), ("replicas: 1", "replicas: 2"), ("6h", "12h")],
    ids=["flag", "type", "no more renewals", "replicas", "length"],
)
def test_a_renewal_goes_on_while_a_change_waits_for_its_approval(cli: Open, change: tuple[str, str]) -> None:
    at = cli()
    approved = RENEWED + "replicas: 1\n"
    _deployed(at, approved)
    (old,) = at.slices
    applied = at.state()["records"][0]["attempts"][0]["spec"]
    _sleep(at.clock, 5 * HOUR)
    profile = at.write(approved.replace(*change))
    assert at.run("ci", "apply", profile).code == 11, "nobody has approved the change"
    client = Client(at=at, each=2)
    with load(at, client):
        resumed = at.run("ci", "apply", "-resume", profile)
    assert resumed.code == 0, resumed.all
    lost_nothing([client], at_least=20)
    (new,) = at.slices
    assert new != old
    (attempt,) = at.state()["records"][0]["attempts"]
    assert attempt["spec"] == applied
    assert at.run("ci", "apply", "-resume", profile).out.endswith("Nothing is in progress.\n")
    assert at.run("ci", "apply", profile).code == 11, "the change still waits"
    at.write(approved)
    assert at.run("plan", profile, DETAILED).code == 0


def test_a_renewal_that_takes_several_schedules_goes_on_beside_the_change(cli: Open) -> None:
    at = cli(timings={"waiting": 2 * HOUR})
    approved = RENEWED.replace("max_run", "valid_until: 4h\n  max_run")
    _deployed(at, approved)
    (old,) = at.slices
    profile = at.write(approved.replace("16384", "8192"))
    resume = ("ci", "apply", "-resume", "-timeout", "20m", profile)
    codes = []
    for _ in range(14):
        _sleep(at.clock, 30 * MINUTE)
        codes.append(at.run(*resume).code)
    assert set(codes) == {0, 12}, codes
    assert old not in at.slices
    assert len(at.slices) == 1
    assert {a["spec"]["serving.max_model_len"] for a in at.state()["records"][0]["attempts"]} == {16384}


def test_a_pipeline_reports_no_drift_where_a_run_ends(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _sleep(at.clock, 5 * HOUR)
    assert at.run("ci", "drift", profile, DETAILED).code == 0


def test_of_several_replicas_each_is_renewed_in_its_own_time(cli: Open) -> None:
    at = cli()
    _deployed(at)
    _sleep(at.clock, 2 * HOUR)
    profile = _deployed(at, RENEWED + "replicas: 2\n")
    _sleep(at.clock, 3 * HOUR)
    planned = at.run("plan", profile)
    assert "gemma[0] will be handed over" in planned.out
    assert "gemma[1]" not in planned.out
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert len(at.slices) == 2
