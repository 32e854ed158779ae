"""Slices as instances of Compute Engine: what a user gets with `placement.backend: gce-instance`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

FLEX = INSTANCE.replace("[spot]", "[flex-start]") + "  max_run_duration: 4h\n"


def applied(at: CommandLine, text: str = INSTANCE) -> str:
    profile = at.write(text)
    result = at.run("apply", "-auto-approve", profile)
    assert result.code == 0, result.all
    return profile


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_apply_serves_and_destroy_leaves_nothing(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes)
    profile = applied(at)
    assert list(at.slices.values()) == ["RUNNING"]
    assert at.requested_zones() == ["us-east5-a"]
    again = at.run("plan", profile, "-detailed-exitcode")
    assert again.code == 0, again.all
    drift = at.run("drift", profile)
    assert drift.code == 0, drift.all
    result = at.run("status", profile)
    assert result.code == 0, result.all
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    assert not at.slices
    # Nothing was asked of the API that this deployment does not use.
    assert not [r for r in at.emulator.requests if "queuedResources" in r.path]


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_a_changed_server_starts_on_the_same_instance(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes)
    applied(at)
    names = list(at.slices)
    applied(at, INSTANCE.replace("16384", "8192") + "  labels: {team: search}\n")
    assert list(at.slices) == names
    plan = at.run("plan", at.write(INSTANCE.replace("16384", "8192") + "  labels: {team: search}\n"))
    assert "No changes" in plan.out, plan.all


def test_a_full_zone_is_left_for_the_next(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a"}])
    applied(at)
    assert at.requested_zones() == ["us-east5-a", "us-east5-b"]


FULL_OF_DISKS = {"fault": "quota-zero", "layer": "L1", "quota": "HDB_TOTAL_GB", "zone": "us-east5-*"}


@pytest.mark.parametrize(
    "scenario",
    [{"project": {"hyperdisk_gb": {"us-east5": 50}}}, {"trouble": [FULL_OF_DISKS]}],
    ids=["in the operation", "in the reply"],
)
def test_a_region_without_quota_of_disks_is_left_for_another(cli: Open, scenario: Mapping[str, Any]) -> None:
    at = cli(**scenario)
    profile = applied(at)
    assert at.requested_zones() == ["us-east5-a", "europe-west4-a"]
    assert "disk-quota" in at.run("state", "show", "gemma", "-json").out
    assert at.run("destroy", "-auto-approve", profile).code == 0


def test_a_quota_of_disks_that_our_own_slice_fills_is_open_again_once_that_is_deleted(cli: Open) -> None:
    full = {"fault": "stockout", "zone": "europe-*"}
    at = cli(nodes="simulated", project={"hyperdisk_gb": {"us-east5": 250}}, trouble=[full])
    text = INSTANCE.replace("us-east5-b, ", "")
    old = applied(at, text)
    larger = text.replace("v6e-1", "v6e-4")
    # The new slice has no room beside the old one, and the only other region is full.
    waiting = at.run("apply", "-auto-approve", at.write(larger), "-timeout", "5m")
    assert waiting.code == 12, waiting.all
    assert at.requested_zones()[:2] == ["us-east5-a", "us-east5-a"]
    assert list(at.slices.values()) == ["RUNNING"]
    assert old == at.write(larger + "lifecycle: {replace: destroy-before-create}\n")
    replaced = at.run("apply", "-auto-approve", old, "-timeout", "1h")
    assert replaced.code == 0, replaced.all
    assert at.requested_zones()[-1] == "us-east5-a"
    assert list(at.slices.values()) == ["RUNNING"]


def test_a_replacement_that_no_place_can_hold_ends_at_once_and_the_old_slice_serves_on(cli: Open) -> None:
    at = cli(nodes="simulated", project={"hyperdisk_gb": {"us-east5": 250}})
    text = INSTANCE.replace(", europe-west4-a", "")
    applied(at, text)
    (name,) = at.slices
    began = at.clock.now()
    result = at.run("apply", "-auto-approve", at.write(text.replace("v6e-1", "v6e-4")))
    assert result.code == 1, result.all
    assert at.clock.now() - began < 300
    assert "Quota 'HDB_TOTAL_GB' exceeded" in result.err
    assert f"{name}, which is kept, uses a part of that quota: lifecycle.replace: destroy-before-create" in result.words
    assert at.slices == {name: "RUNNING"}
    # The profile as it was is what runs.
    assert at.run("plan", at.write(text), "-detailed-exitcode").code == 0


@pytest.mark.parametrize("fault", ["type-unsupported", "model-unsupported"], ids=["in the reply", "in the operation"])
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("This user agent is not allowed to use the machine type [ct6e-standard-1t]", "placement.backend"),
        ("pd-ssd disk type cannot be used by ct6e-standard-1t.", "report it"),
    ],
    ids=["machine-refused", "machine-mismatch"],
)
def test_what_no_zone_would_take_stops_the_run_at_once_and_says_what_to_do(
    cli: Open, fault: str, words: str, hint: str
) -> None:
    at = cli(trouble=[{"fault": fault, "message": words}])
    stopped = at.run("apply", "-auto-approve", at.write(INSTANCE))
    assert stopped.code == 1, stopped.all
    assert words in stopped.err
    assert hint in stopped.err or "explain machine-" in stopped.err
    assert at.requested_zones() == ["us-east5-a"]
    assert not at.slices


def test_a_change_of_an_instance_that_is_busy_is_sent_again(cli: Open) -> None:
    at = cli()
    applied(at)
    busy = {"fault": "zone-unsupported", "message": "The resource 'projects/p/zones/z/instances/x' is not ready"}
    at.emulator.script({**busy, "method": "compute.instances.setMetadata", "times": 2})
    applied(at, INSTANCE.replace("16384", "8192"))
    assert list(at.slices.values()) == ["RUNNING"]


def test_the_zone_in_which_a_refusal_says_there_is_capacity_comes_next(cli: Open) -> None:
    hint = {"fault": "stockout", "zone": "us-east5-a", "zones_available": "europe-west4-a, no zone,us-west9-z"}
    at = cli(trouble=[hint])
    applied(at)
    assert at.requested_zones() == ["us-east5-a", "europe-west4-a"]


def test_a_preempted_instance_is_replaced_by_the_next_apply(cli: Open) -> None:
    at = cli()
    applied(at)
    (first,) = at.slices
    at.emulator.preempt(first)
    at.clock.sleep(300)
    applied(at)
    assert first not in at.slices
    assert list(at.slices.values()) == ["RUNNING"]


@pytest.mark.parametrize("after", [1.0, 20.0, 100.0, 300.0])
def test_killed_anywhere_a_second_apply_completes_the_same_instance(cli: Open, after: float) -> None:
    at = cli()
    profile = at.write(INSTANCE)
    at.left_or_killed(after, "apply", "-auto-approve", profile)
    applied(at)
    assert list(at.slices.values()) == ["RUNNING"]
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


@pytest.mark.parametrize("shows_pending", [True, False])
def test_flex_start_waits_in_its_queue_and_can_be_destroyed_there(cli: Open, *, shows_pending: bool) -> None:
    """Whether Google lists an instance before the grant is not verified: either way nothing is left."""
    at = cli(timings={"waiting": 3000}, compute_engine={"shows_pending": shows_pending})
    profile = at.write(FLEX)
    waited = at.run("apply", "-auto-approve", profile, "-timeout", "20m")
    assert waited.code == 12, waited.all
    assert len(at.requested_zones()) == 1
    destroyed = at.run("destroy", "-auto-approve", profile)
    assert destroyed.code == 0, destroyed.all
    at.clock.sleep(4 * 3600)
    assert not at.slices


@pytest.mark.parametrize("lapse_has_error", [True, False])
def test_a_flex_start_request_that_lapsed_is_sent_again(cli: Open, *, lapse_has_error: bool) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever", "times": 1}], compute_engine={"lapse_has_error": lapse_has_error})
    applied(at, FLEX + "  valid_until: 10m\n")
    assert len(at.requested_zones()) > 1
    assert list(at.slices.values()) == ["RUNNING"]


def test_an_open_insert_of_hours_is_waited_for_and_not_given_up(cli: Open) -> None:
    """A request that Google has not begun to list is in its queue, and keeps its place there."""
    at = cli(timings={"waiting": 5400}, compute_engine={"shows_pending": False})
    applied(at, FLEX)
    assert len(at.requested_zones()) == 1


def test_a_refusal_of_one_api_says_nothing_about_the_other(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-zero", "method": "queuedResources.create"}])
    profile = at.write(PROFILE)
    assert at.run("apply", "-auto-approve", profile).code != 0
    applied(at)
    assert list(at.slices.values()) == ["RUNNING"]


def test_render_shows_the_insert_that_apply_would_send(cli: Open) -> None:
    at = cli()
    rendered = at.run("render", at.write(FLEX), "request")
    body = json.loads(rendered.out)
    assert body["machineType"] == "zones/us-east5-a/machineTypes/ct6e-standard-1t"
    assert body["scheduling"]["provisioningModel"] == "FLEX_START"
    assert body["params"] == {"requestValidForDuration": {"seconds": "7200"}}


def test_one_startup_script_is_right_on_the_machines_of_either_api(cli: Open) -> None:
    at = cli()
    instance = at.run("render", at.write(INSTANCE), "startup-script").out
    assert "max_map_count" in instance
    assert instance == at.run("render", at.write(PROFILE), "startup-script").out


def test_the_boot_log_is_read_from_the_serial_console(cli: Open) -> None:
    at = cli(nodes="real")
    logs = at.run("logs", applied(at))
    assert logs.code == 0, logs.all
    assert "Healthy, and completed a prompt" in logs.all
    assert "startup-script: " not in logs.out  # the guest agent's prefix


def test_an_instance_of_a_lost_state_is_adopted(cli: Open) -> None:
    at = cli()
    profile = applied(at)
    (name,) = at.slices
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    planned = at.run("plan", profile)
    assert "TPU3010" in planned.all
    adopted = at.run("apply", "-adopt", "-auto-approve", profile)
    assert adopted.code == 0, adopted.all
    assert list(at.slices) == [name]


def test_an_instance_without_a_state_is_an_orphan_that_gc_removes(cli: Open) -> None:
    at = cli()
    applied(at)
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    listed = at.run("gc")
    assert "us-east5-a" in listed.out, listed.all
    removed = at.run("gc", "-foreign", "-auto-approve")
    assert removed.code == 0, removed.all
    assert not at.slices


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (INSTANCE.replace("v6e-1", "v5litepod-4"), "TPU1326", "gce-instance does not serve v5e"),
        (INSTANCE + "  max_run_duration: 20s\n", "TPU1327", "20s is less than 30s"),
        (FLEX.replace("4h", "5m"), "TPU1327", "5m is less than 10m"),
        (FLEX + "  valid_until: 1m\n", "TPU1328", "1m is less than 90s"),
        (
            INSTANCE.replace("type: v6e-1", "type: v6e-1\n  runtime_version: v2-alpha-tpuv6e"),
            "TPU1303",
            "the runtime of queued-resource",
        ),
    ],
)
def test_what_compute_engine_would_refuse_is_an_error_before_anything_is_asked(
    cli: Open, text: str, code: str, words: str
) -> None:
    at = cli()
    result = at.run("validate", at.write(text))
    assert result.code == 1
    assert code in result.all
    assert words in result.all, result.all


def test_a_longer_wait_than_compute_engine_has_is_a_warning(cli: Open) -> None:
    at = cli()
    result = at.run("validate", at.write(FLEX + "  valid_until: 6h\n"))
    assert result.code == 0, result.all
    assert "TPU1328" in result.all


def test_a_zone_that_preempts_instances_while_they_boot_is_not_asked_again_for_hours(cli: Open) -> None:
    """Compute Engine deletes an instance that it preempts, so that nothing but its absence says so."""
    at = cli(trouble=[{"fault": "preempt", "zone": "us-east5-a", "after": 200}], nodes="simulated")
    applied = at.run("apply", "-auto-approve", "-timeout", "2h", at.write(INSTANCE))
    assert applied.code == 0, applied.all
    assert at.requested_zones() == ["us-east5-a", "us-east5-b"]
    assert "Failed landing in us-east5-a, spot, gce-instance (preempted); next attempt there in 2h" in applied.err
