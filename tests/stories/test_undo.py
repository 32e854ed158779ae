"""A change fails, and undoing it takes as long as any boot: what a person is told meanwhile, and may do meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

BOOT = 300.0  # seconds: a change fails after one boot, and is undone after two
SHORTER = PROFILE.replace("16384", "8192")
BAD = SHORTER.replace("  max_model_len", '  setup: ["pip install broken"]\n  max_model_len')
BLUE_GREEN = "lifecycle: {update: blue-green}\n"
DURING_THE_CHANGE, DURING_THE_UNDO = 150.0, 450.0
FAILS = {"setup_fails": True, "boot_seconds": BOOT}


def test_the_endpoint_stands_throughout_an_undo_that_takes_minutes(cli: Open) -> None:
    at = cli(boot=FAILS)
    profile = _serve(at)
    endpoint, began = _endpoint(at), at.clock.now()
    at.write(BAD)
    is_there = _watch(at, lambda: _endpoint(at) == endpoint)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert at.clock.now() - began >= 2 * BOOT
    assert all(is_there)
    assert len(is_there) > 10
    assert "The change failed: a setup step exited 1" in changed.err
    assert "restarts the previous server" in changed.err
    assert changed.err.index("restarts the previous server") < changed.err.index("runs the previous server again")
    assert "The previous server serves on the same chips" in changed.err
    assert "completion tokens" in at.run("query", profile, "Say hello.").all
    assert at.run("drift", profile).code == 0
    assert "1 to restart" in at.run("plan", profile).out


def test_after_an_undo_the_plan_for_the_profile_of_before_names_what_differs(cli: Open) -> None:
    at = cli(boot=FAILS)
    profile = _serve(at)
    at.write(BAD)
    assert at.run("apply", "-auto-approve", profile).code == 13
    at.write()
    planned = at.run("plan", profile)
    assert "0 to add, 1 to change, 0 to destroy" in planned.out
    assert "names the change that failed and was undone" in planned.words
    assert "metadata.tpudeploy-spec" in planned.out
    assert "its machine differs" not in planned.words
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_an_undo_that_fails_too_is_told_as_it_is_and_withdraws_the_endpoint(cli: Open) -> None:
    at = cli(boot={**FAILS, "undo_fails": True})
    profile = _serve(at)
    at.write(BAD)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 1, changed.all
    assert "gemma[0] does not serve: a setup step exited 1 (the server before did not come back either: " in changed.err
    assert "its endpoint is withdrawn" in changed.err
    assert "serves on the same chips" not in changed.err
    assert _endpoint(at) is None
    at.write()
    restored = at.run("apply", "-auto-approve", profile)
    assert restored.code == 0, restored.all
    assert _endpoint(at) is not None
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_an_undo_that_never_ends_is_given_up_after_a_while(cli: Open) -> None:
    at, profile, _ = _killed(cli, DURING_THE_UNDO)
    _set(at, hang=True)
    began = at.clock.now()
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 1, changed.all
    assert "the server before did not come back either: " in changed.err
    assert "min have passed" in changed.err
    assert 1800 < at.clock.now() - began < 7200
    assert _endpoint(at) is None


@pytest.mark.parametrize("after", [DURING_THE_CHANGE, DURING_THE_UNDO])
def test_a_run_that_is_killed_goes_on_and_tells_how_it_ended(cli: Open, after: float) -> None:
    at, profile, endpoint = _killed(cli, after)
    assert _endpoint(at) == endpoint
    resumed = at.run("apply", profile)
    assert resumed.code == 13, resumed.all
    assert "a setup step exited 1" in resumed.err
    assert _endpoint(at) == endpoint
    assert _is_asked_once(at)


@pytest.mark.parametrize("after", [DURING_THE_CHANGE, DURING_THE_UNDO])
def test_a_run_that_stops_waiting_leaves_the_endpoint(cli: Open, after: float) -> None:
    at = cli(boot=FAILS)
    profile = _serve(at)
    endpoint = _endpoint(at)
    at.write(BAD)
    stopped = at.run("apply", "-auto-approve", "-timeout", f"{after:.0f}s", profile)
    assert stopped.code == 1, stopped.all
    assert "did not serve in time" in stopped.err
    assert _endpoint(at) == endpoint
    assert at.run("apply", profile).code == 13
    assert _endpoint(at) == endpoint


@pytest.mark.parametrize("after", [DURING_THE_CHANGE, DURING_THE_UNDO])
def test_taking_the_change_back_meanwhile_ends_as_it_was(cli: Open, after: float) -> None:
    at, profile, endpoint = _killed(cli, after)
    before = _node(at)
    at.write()
    restored = at.run("apply", "-auto-approve", profile)
    assert restored.code == 0, restored.all
    assert (_endpoint(at), _node(at)) == (endpoint, before)
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("drift", profile).code == 0


@pytest.mark.parametrize("after", [DURING_THE_CHANGE, DURING_THE_UNDO])
def test_another_change_meanwhile_wins(cli: Open, after: float) -> None:
    at, profile, endpoint = _killed(cli, after)
    before = _node(at)
    at.write(SHORTER)
    is_there = _watch(at, lambda: _endpoint(at) == endpoint)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 0, changed.all
    assert all(is_there)
    assert _node(at) == before
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_another_bad_change_meanwhile_is_undone_to_what_served_last(cli: Open) -> None:
    at, profile, endpoint = _killed(cli, DURING_THE_UNDO)
    at.write(BAD.replace("8192", "4096"))
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert "The previous server serves on the same chips" in changed.err
    assert _endpoint(at) == endpoint
    at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0


@pytest.mark.parametrize("blue_green", ["", BLUE_GREEN])
def test_destroying_it_meanwhile_leaves_nothing(cli: Open, blue_green: str) -> None:
    at, profile, _ = _killed(cli, DURING_THE_UNDO, blue_green)
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert at.slices == {}
    assert _endpoint(at) is None


def test_a_node_that_dies_meanwhile_is_replaced_and_the_change_judged_there(cli: Open) -> None:
    at, profile, _ = _killed(cli, DURING_THE_UNDO)
    (name,) = at.slices
    at.emulator.preempt(name)
    at.clock.sleep(60)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 1, changed.all
    assert "gemma[0] does not serve: a setup step exited 1" in changed.err
    assert "serves on the same chips" not in changed.err
    assert _endpoint(at) is None
    assert list(at.slices.values()) == ["ACTIVE"]
    at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_a_node_that_dies_while_its_run_waits_for_the_undo_is_replaced_by_that_run(cli: Open) -> None:
    at = cli(boot=FAILS)
    profile = _serve(at)
    (name,) = at.slices
    died = at.clock.now() + DURING_THE_UNDO
    at.clock.on_advance.append(lambda: _preempt(at, name, died))
    at.write(BAD)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code in {11, 13}, changed.all
    assert _endpoint(at) is None
    at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert len(at.slices) == 1


def test_a_machine_that_reboots_in_the_middle_of_its_undo_is_waited_for(cli: Open) -> None:
    at, profile, endpoint = _killed(cli, DURING_THE_UNDO)
    _host(at).reboot()
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert "The previous server serves on the same chips" in changed.err
    assert _endpoint(at) == endpoint
    assert not [r for r in at.emulator.requests if r.resource.endswith(":reset")]


@pytest.mark.parametrize("when", [1.0, DURING_THE_CHANGE, DURING_THE_UNDO])
def test_a_report_that_is_lost_for_a_while_resets_nothing(cli: Open, when: float) -> None:
    at = cli(boot=FAILS)
    profile = _serve(at)
    endpoint, began = _endpoint(at), at.clock.now()
    at.write(BAD)
    window = began + when, began + when + 60
    at.clock.on_advance.append(lambda: _set(at, guest_attributes=not window[0] <= at.clock.now() < window[1]))
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert "The previous server serves on the same chips" in changed.err
    assert _endpoint(at) == endpoint
    assert not [r for r in at.emulator.requests if r.resource.endswith(":reset")]


def test_a_node_that_is_reset_into_a_bad_change_goes_back_too(cli: Open) -> None:
    at = cli(boot={**FAILS, "hears_changes": False})
    profile = _serve(at)
    endpoint = _endpoint(at)
    at.write(BAD)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert "Reset requested" in changed.err
    assert "The previous server serves on the same chips" in changed.err
    assert _endpoint(at) == endpoint
    at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert _endpoint(at) == endpoint


def test_a_second_slice_that_goes_back_to_what_it_served_first_takes_no_client(cli: Open) -> None:
    """Killed between its first completion and the hand-over, it served a server that clients were never sent to."""
    at = cli(boot=FAILS)
    profile = _serve(at, PROFILE + BLUE_GREEN)
    (blue,) = at.slices
    endpoint = _endpoint(at)
    at.write(SHORTER + BLUE_GREEN)
    at.killed(BOOT, "apply", "-auto-approve", profile)
    at.clock.sleep(BOOT)
    at.write(BAD.replace("8192", "4096") + BLUE_GREEN)
    changed = at.run("apply", "-auto-approve", profile)
    assert changed.code == 13, changed.all
    assert f"serves as before: {blue} was not" in changed.err
    assert _endpoint(at) == endpoint
    at.write(PROFILE + BLUE_GREEN)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert list(at.slices) == [blue]


@pytest.mark.parametrize("undo_fails", [False, True])
def test_status_says_that_a_change_is_being_undone_and_what_came_of_it(cli: Open, undo_fails: bool) -> None:
    at, profile, _ = _killed(cli, DURING_THE_UNDO)
    failed = "change failed: a setup step exited 1"
    assert f"{failed}; the previous server starts again" in at.run("status", profile).words
    replica = json.loads(at.run("status", profile, "-json").out)["deployments"][0]["replicas"][0]
    assert replica["undo"].startswith("a setup step exited 1")
    _set(at, undo_fails=undo_fails)
    at.clock.sleep(2 * BOOT)
    came = "did not start again" if undo_fails else "serves again"
    assert f"the previous server {came}" in at.run("status", profile).words
    at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert "change failed" not in at.run("status", profile).words


def _killed(cli: Open, after: float, lifecycle: str = "") -> tuple[CommandLine, str, dict[str, object] | None]:
    """Serve, then apply a bad change whose run is killed `after` so many seconds; the profile and its endpoint."""
    at = cli(boot=FAILS)
    profile = _serve(at, PROFILE + lifecycle)
    endpoint = _endpoint(at)
    at.write(BAD + lifecycle)
    at.killed(after, "apply", "-auto-approve", profile)
    return at, profile, endpoint


def _serve(at: CommandLine, text: str = PROFILE) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    return profile


def _endpoint(at: CommandLine) -> dict[str, object] | None:
    """Return what a client of one address reads. A server that restarts leaves the list that routers read."""
    path = at.folder / "endpoints" / "gemma.json"
    if not path.exists():
        return None
    file = json.loads(path.read_text(encoding="utf-8"))
    return {key: file[key] for key in ("url", "generation", "since")}


def _watch(at: CommandLine, claim: Callable[[], bool]) -> list[bool]:
    """Whether `claim` holds, whenever time passes from here on."""
    holds: list[bool] = []
    at.clock.on_advance.append(lambda: holds.append(claim()))
    return holds


def _host(at: CommandLine) -> Any:
    (node,) = at.emulator._cloud.nodes.values()
    return node.hosts[0]


def _node(at: CommandLine) -> str:
    (name,) = at.slices
    return name


def _set(at: CommandLine, **behaviour: object) -> None:
    """From now on its boots go otherwise."""
    host = _host(at)
    host._behaviour = replace(host._behaviour, **behaviour)


def _preempt(at: CommandLine, name: str, when: float) -> None:
    if at.clock.now() >= when and at.slices.get(name) == "ACTIVE":
        at.emulator.preempt(name)


def _is_asked_once(at: CommandLine) -> bool:
    """Whether the node was told of its change once."""
    return sum(r.method == "PATCH" for r in at.emulator.requests) == 1
