"""`lifecycle.idle`: what has had no request for a while ends, and nothing that serves one does, whoever looks at it."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

MINUTE, HOUR = 60.0, 3600.0
GROUP = (
    INSTANCE.replace("v6e-1", "v5p-16")
    .replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    .replace("[spot]", "[on-demand]")
)
IDLE = f"{PROFILE}lifecycle: {{idle: 30m}}\n"


def _serving(cli: Open, profile: str = IDLE, **scenario: object) -> CommandLine:
    at = cli(**scenario)
    at.write(profile)
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    return at


def _request(at: CommandLine) -> None:
    """Send a request as a user's client does."""
    endpoint = json.loads((Path(at.folder) / "endpoints" / "gemma.json").read_text("utf-8"))
    body = json.dumps({"model": "google/gemma-4-E2B-it", "prompt": "Hello", "max_tokens": 4}).encode()
    request = Request(f"{endpoint['url']}/v1/completions", data=body, headers={"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as response:
        assert response.status == 200


def _pass(at: CommandLine, seconds: float) -> None:
    for _ in range(round(seconds / MINUTE)):
        at.clock.sleep(MINUTE)


@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_a_machine_without_requests_deletes_itself_when_nobody_is_there(cli: Open, profile: str, nodes: str) -> None:
    lasting = profile if profile is PROFILE else profile.replace("[spot]", "[on-demand]")
    at = _serving(cli, f"{lasting}lifecycle: {{idle: 30m}}\n", nodes=nodes)
    _pass(at, 20 * MINUTE)
    assert at.emulator.billed()
    _pass(at, 20 * MINUTE)
    assert not at.emulator.billed()
    after = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert "No changes." in after.out, after.all
    assert "lifecycle.idle: 30m" in after.words
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert "ended at" in at.run("status", "gemma.yaml").words
    assert not at.emulator.billed()


def test_a_group_of_machines_without_requests_is_deleted_by_the_first_of_them_and_not_requested_again(
    cli: Open,
) -> None:
    at = _serving(cli, f"{GROUP}lifecycle: {{idle: 30m}}\n", nodes="simulated")
    _pass(at, 20 * MINUTE)
    _request(at)
    _pass(at, 20 * MINUTE)
    assert at.emulator.billed()
    _pass(at, 20 * MINUTE)
    assert not at.emulator.billed()
    ended = at.run("apply", "-auto-approve", "gemma.yaml")
    assert ended.code == 0, ended.all
    assert "lifecycle.idle: 30m" in at.run("plan", "gemma.yaml").words
    assert not at.emulator._cloud.group_parts


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_a_stream_of_requests_keeps_it(cli: Open, nodes: str) -> None:
    at = _serving(cli, nodes=nodes)
    for _ in range(6):
        _pass(at, 20 * MINUTE)
        _request(at)
    assert at.emulator.billed()
    _pass(at, 40 * MINUTE)
    assert not at.emulator.billed()


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_looks_of_tpudeploy_do_not_keep_it(cli: Open, nodes: str) -> None:
    at = _serving(cli, nodes=nodes)
    for look in ("status", "drift", "verify", "plan", "status"):
        _pass(at, 7 * MINUTE)
        at.run(look, "gemma.yaml")
    assert not at.emulator.billed()


def test_where_the_log_has_no_marks_looks_keep_it_and_no_request_is_lost(cli: Open) -> None:
    at = _serving(cli, trouble=[{"fault": "boot", "name": "*", "access_log": False}])
    for _ in range(4):
        _pass(at, 20 * MINUTE)
        at.run("status", "gemma.yaml")
    assert at.emulator.billed()
    _pass(at, 40 * MINUTE)
    assert not at.emulator.billed()


def test_a_machine_that_may_not_delete_itself_is_ended_by_the_next_apply_with_the_reason(cli: Open) -> None:
    at = _serving(cli, project={"denied_machine_permissions": ["tpu.nodes.delete"]})
    _pass(at, 45 * MINUTE)
    assert at.emulator.billed()
    plan = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert plan.code == 2, plan.all
    assert "gemma[0] will be destroyed" in plan.out
    assert "lifecycle.idle: 30m; idle for 4" in plan.words
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert not at.emulator.billed()


def test_a_watch_ends_what_is_idle_and_replaces_what_a_person_deletes_while_it_is_used(cli: Open) -> None:
    at = cli(project={"denied_machine_permissions": ["tpu.nodes.delete"]})
    at.write(IDLE)
    began = at.clock.now()
    result = at.run("apply", "-auto-approve", "-watch", "gemma.yaml")
    assert result.code == 0, result.all
    assert "lifecycle.idle: 30m; idle for 3" in result.err
    assert at.clock.now() - began < 2 * HOUR
    assert not at.emulator.billed()


def test_what_ended_when_idle_starts_again_at_once_when_a_person_says_so(cli: Open) -> None:
    at = _serving(cli)
    _pass(at, 40 * MINUTE)
    started = at.run("apply", "-auto-approve", "-start", "gemma.yaml")
    assert started.code == 0, started.all
    assert at.emulator.billed()
    _pass(at, 20 * MINUTE)
    assert at.emulator.billed()
    _pass(at, 20 * MINUTE)
    assert not at.emulator.billed()


def test_a_slice_that_a_person_deletes_while_it_is_used_is_requested_again(cli: Open) -> None:
    at = _serving(cli)
    _pass(at, 5 * MINUTE)
    for name in at.emulator.billed():
        at.delete_by_hand(name)
    at.clock.sleep(5 * MINUTE)
    assert "1 to " in at.run("plan", "gemma.yaml").out


def test_one_of_several_replicas_does_not_end_by_itself_and_a_plan_says_who_ends_them(cli: Open) -> None:
    at = _serving(cli, f"{IDLE}replicas: 2\n")
    _pass(at, 45 * MINUTE)
    assert len(at.emulator.billed()) == 2
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert not at.emulator.billed()
    at.write(f"{IDLE}replicas: 3\n")
    assert "it ends once no replica had a request for 30m: by the next `apply`" in at.run("plan", "gemma.yaml").words
