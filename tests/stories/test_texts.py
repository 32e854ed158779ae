"""Whole screens, as a person reads them from the first line to the last: tests/golden holds the texts."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr

import pytest
from command_line import PROFILE, CommandLine, Open
from goldens import assert_golden

# Constructed: the words are those of XLA's compiler as issues quote them; no whole log of such a death is at hand.
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 33.2G of 31.2G hbm."
FULL = {"fault": "stockout", "zone": "us-east5-a"}


def _screen(at: CommandLine, *words: str) -> str:
    """Both streams, in the order of time."""
    with redirect_stderr(sys.stdout):
        result = at.run(*words)
    return f"$ tpudeploy {' '.join(words)}\n{result.out}[exit {result.code}]\n"


def _holds(at: CommandLine, name: str, *words: str) -> None:
    assert_golden(f"screens/{name}", _screen(at, *words), folder=at.folder)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_the_life_of_a_deployment_reads_well(cli: Open) -> None:
    at = cli(trouble=[FULL])
    profile = at.write()
    _holds(at, "status-nothing", "status", profile)
    _holds(at, "plan-create", "plan", profile)
    _holds(at, "apply-create", "apply", "-auto-approve", profile)
    _holds(at, "status-serving", "status", profile)
    _holds(at, "plan-no-changes", "plan", profile)
    at.write(PROFILE.replace("16384", "8192").replace("v0.32.0", "v0.33.0"))
    _holds(at, "plan-restart", "plan", profile)
    at.write(PROFILE + "  labels: {team: search}\n")
    _holds(at, "plan-update", "plan", profile)
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    _holds(at, "plan-replace", "plan", profile)
    at.write(PROFILE.replace("v6e-1", "v6e-4") + "lifecycle: {replace: destroy-before-create, prevent_destroy: true}\n")
    _holds(at, "plan-replace-prevented", "plan", profile)
    at.write()
    _holds(at, "plan-destroy", "plan", "-destroy", profile)
    _holds(at, "destroy", "destroy", "-auto-approve", profile)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_a_restart_in_place_reads_well(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write(PROFILE.replace("16384", "8192"))
    _holds(at, "apply-restart", "apply", "-auto-approve", profile)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_hand_overs_read_well(cli: Open) -> None:
    at = cli(trouble=[{"fault": "boot", "attempt": "2", "crash": OUT_OF_MEMORY}])
    lasting = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 6h")
    profile = at.write(lasting + "lifecycle: {update: blue-green, on_run_end: renew}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.write((at.folder / profile).read_text("utf-8").replace("16384", "8192"))
    _holds(at, "plan-blue-green", "plan", profile)
    _holds(at, "apply-blue-green-crash", "apply", "-auto-approve", profile)
    at.write((at.folder / profile).read_text("utf-8").replace("8192", "16384"))
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(4.9 * 3600.0)
    _holds(at, "plan-renew", "plan", profile)
    _holds(at, "apply-renew", "apply", "-auto-approve", profile)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_pins_read_well(cli: Open) -> None:
    at = cli(project={"pushes": {"vllm/vllm-tpu:nightly": 86400}})
    profile = at.write(PROFILE.replace("v0.32.0", "nightly"))
    _holds(at, "apply-pinned", "apply", "-auto-approve", profile)
    at.clock.sleep(86400)
    _holds(at, "plan-pin", "plan", "-pin", profile)
    at.emulator.script({"fault": "unavailable", "method": "registry.*"})
    at.write(PROFILE.replace("v0.32.0", "latest"))
    _holds(at, "plan-unpinned", "plan", profile)
    (at.folder / "tpudeploy.lock.json").write_text('{"format": "tpudeploy.lock/2"}', "utf-8")
    _holds(at, "plan-pins-too-new", "plan", profile)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_a_failed_boot_reads_well(cli: Open) -> None:
    at = cli(boot={"crash": OUT_OF_MEMORY})
    profile = at.write()
    _holds(at, "apply-crash", "apply", "-auto-approve", profile)
    _holds(at, "status-crash", "status", profile)
    _holds(at, "plan-after-crash", "plan", profile)


@pytest.mark.polls_every_second("a whole screen, with each state")
def test_a_wait_that_ends_reads_well(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    profile = at.write()
    _holds(at, "apply-timeout", "apply", "-auto-approve", "-timeout", "30m", profile)
    _holds(at, "status-waiting", "status", profile)
    _holds(at, "plan-in-progress", "plan", profile)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_an_unreachable_endpoint_reads_well(cli: Open) -> None:
    at = cli(boot={"reachable": False})
    _holds(at, "apply-unreachable", "apply", "-auto-approve", at.write())
    _holds(at, "status-unreachable", "status", "gemma.yaml")


def test_a_cloud_without_quota_reads_well(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-zero"}])
    _holds(at, "apply-no-quota", "apply", "-auto-approve", at.write())


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
@pytest.mark.polls_every_second("the screen has ages to the second")
def test_what_is_left_over_reads_well(cli: Open) -> None:
    at = cli(timings={"provisioning": 300.0})
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    other = at.write(PROFILE.replace("name: gemma", "name: other").replace("v6e-1", "v6e-4"), "other.yaml")
    assert at.run("apply", "-auto-approve", other).code == 0
    third = at.write(PROFILE.replace("name: gemma", "name: third"), "third.yaml")
    assert at.run("apply", "-auto-approve", "-wait", "accepted", third).code == 0
    _holds(at, "gc-nothing", "gc")
    (at.folder / ".tpudeploy" / "state" / "other.json").unlink()
    state_file = at.folder / ".tpudeploy" / "state" / "third.json"
    state = {**json.loads(state_file.read_text("utf-8")), "records": []}
    state_file.write_text(json.dumps(state), "utf-8")
    at.emulator.script({"fault": "unreachable", "zones": "europe-west4-a", "times": 2})
    _holds(at, "gc", "gc", "-auto-approve")
    _holds(at, "gc-foreign", "gc", "-foreign", "-auto-approve")


def test_a_lost_state_reads_well(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("apply", "-auto-approve", profile).code == 0
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    _holds(at, "plan-lost-state", "plan", profile)
    _holds(at, "destroy-lost-state", "destroy", profile)
    _holds(at, "apply-adopt", "apply", "-adopt", "-auto-approve", profile)
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    at.write(PROFILE.replace("16384", "8192"))
    _holds(at, "plan-adopt-restart", "plan", "-adopt", profile)


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
@pytest.mark.polls_every_second("a whole screen, with each state")
def test_a_hunt_in_many_places_reads_well(cli: Open) -> None:
    queues = {"fault": "wait-for-ever", "model": "FLEX_START"}
    quota = {"fault": "quota-zero", "model": "SPOT", "zone": "us-west1-c"}
    at = cli(trouble=[queues, quota, {"fault": "stockout", "model": "SPOT", "times": 12}])
    many = PROFILE.replace("[spot]", "[flex-start, spot]\n  max_run_duration: 12h").replace(
        "requests: 1", "requests: 6"
    )
    many = many.replace("europe-west4-a]", "europe-west4-a, us-central1-b, us-east1-d, us-west1-c]")
    _holds(at, "apply-hunt", "apply", "-auto-approve", at.write(many))


@pytest.mark.instant("whole screens: a boot that lasts fills them with its phases")
def test_what_changed_outside_reads_well(cli: Open) -> None:
    at = cli()
    labelled = PROFILE + "  labels: {team: search}\n"
    profile = at.write(labelled)
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(3600)
    _holds(at, "drift-none", "drift", profile)
    (node,) = at.emulator._cloud.nodes.values()
    node.spec = {**node.spec, "labels": {**node.spec["labels"], "team": "ads"}}
    _holds(at, "drift", "drift", profile)
    at.write(labelled.replace("16384", "8192"))
    _holds(at, "plan-drift", "plan", profile)
    _holds(at, "plan-replace-requested", "plan", "-replace", "gemma[0]", "-target", "gemma[0]", profile)
    _holds(at, "apply-refresh-only", "apply", "-refresh-only", "-auto-approve", profile)
    _holds(at, "show", "show")
    _holds(at, "plan-out", "plan", "-out", "it.plan", profile)
    _holds(at, "apply-saved", "apply", "it.plan")
    _holds(at, "apply-stale", "apply", "it.plan")
