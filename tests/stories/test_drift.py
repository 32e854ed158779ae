"""What changed outside: told apart from what was meant, undone by an apply, or written down as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

LABELLED = PROFILE + "  labels: {team: search}\n"
DETAILED = "-detailed-exitcode"
OUTSIDE = "Note: Objects have changed outside of tpudeploy"


def _deployed(at: CommandLine, text: str = LABELLED) -> str:
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    at.clock.sleep(3600)
    return profile


def _node(at: CommandLine) -> Any:
    (node,) = at.emulator._cloud.nodes.values()
    return node


def _node_spec(at: CommandLine) -> Mapping[str, Any]:
    """What was said of the node: no tags are none."""
    return {key: value for key, value in _node(at).spec.items() if value}


def _set(at: CommandLine, key: str, **values: str | None) -> None:
    """Somebody changes the node by other means."""
    node = _node(at)
    values_by_key: Mapping[str, str | None] = {**node.spec.get(key, {}), **values}
    node.spec = {**node.spec, key: {k: v for k, v in values_by_key.items() if v is not None}}


def test_what_nobody_touched_has_no_drift(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    result = at.run("drift", profile)
    assert result.code == 0, result.all
    assert result.out == "No changes. The live resources match what was last applied.\n"
    assert at.run("drift", at.write(PROFILE.replace("16384", "8192"))).code == 0, "what is meant is no drift"


def test_a_label_that_somebody_changed_is_shown_as_live_beside_applied_and_undone(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _set(at, "labels", team="ads")
    result = at.run("drift", profile)
    assert result.code == 2
    assert OUTSIDE in result.out
    assert '~ placement.labels.team = "search" (applied) -> "ads" (live)' in result.out
    planned = at.run("plan", profile, DETAILED)
    assert planned.code == 2
    assert planned.out.index(OUTSIDE) < planned.out.index("will be updated in place")
    assert '~ placement.labels.team = "ads" (live; applied: "search") -> "search"' in planned.words
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert _node(at).spec["labels"]["team"] == "search"
    assert at.run("drift", profile).code == 0
    assert at.run("plan", profile, DETAILED).code == 0


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("labels", {"owner": "me"}, '+ placement.labels.owner = null (applied) -> "me" (live)'),
        ("labels", {"team": None}, '- placement.labels.team = "search" (applied) -> null (live)'),
        ("metadata", {"startup-script": "#!/bin/sh\nreboot\n"}, "~ metadata.startup-script ="),
        ("metadata", {"tpudeploy-spec": "0123456789abcdef"}, '-> "0123456789abcdef" (live)'),
    ],
)
def test_whatever_somebody_did_to_the_node_is_told_and_undone_without_a_restart(
    cli: Open, key: str, values: dict[str, str | None], message: str
) -> None:
    at = cli()
    profile = _deployed(at)
    before = _node_spec(at)
    _set(at, key, **values)
    assert message in at.run("drift", profile).words
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in at.run("plan", profile).out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert _node_spec(at) == before
    assert at.run("drift", profile).code == 0
    assert not [r for r in at.emulator.requests if r.resource.endswith(":reset")]


def test_network_tags_are_compared_as_a_set(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, PROFILE + "  network: {tags: [a, b]}\n")
    _node(at).spec = {**_node(at).spec, "tags": ["b", "a"]}
    assert at.run("drift", profile).code == 0
    _node(at).spec = {**_node(at).spec, "tags": ["b", "c"]}
    assert "placement.network.tags" in at.run("drift", profile).out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert _node(at).spec["tags"] == ["a", "b"]


def test_a_label_of_googles_own_is_no_drift(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _set(at, "labels", **{"goog-managed": "1"})
    assert at.run("drift", profile).code == 0


def test_a_machine_that_runs_another_server_is_restarted_into_ours(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _set(at, "metadata", **{"tpudeploy-spec": "0123456789abcdef"})
    _node(at).hosts[0].reboot()
    result = at.run("drift", profile)
    assert result.code == 2
    assert "~ server =" in result.words
    planned = at.run("plan", profile)
    assert "1 to restart" in planned.out
    assert "its machine differs from what was last applied to it" in planned.out
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    at.clock.sleep(3600)
    assert at.run("drift", profile).code == 0


def test_a_machine_that_was_booted_otherwise_and_looks_as_it_did_is_found_by_drift(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    metadata = dict(_node(at).spec["metadata"])
    _set(at, "metadata", **{"tpudeploy-spec": "0123456789abcdef"})
    _node(at).hosts[0].reboot()
    _node(at).spec = {**_node(at).spec, "metadata": metadata}
    assert at.run("plan", profile, DETAILED).code == 0, "a plan asks no machine whose metadata is as it was left"
    assert "~ server =" in at.run("drift", profile).words
    assert at.run("apply", "-refresh-only", "-auto-approve", profile).code == 0
    assert "1 to restart" in at.run("plan", profile).out


def test_a_server_that_no_longer_answers_is_found_by_drift_alone(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _node(at).hosts[0].stop()
    result = at.run("drift", profile)
    assert result.code == 2
    assert "gemma[0] no longer serves" in result.out
    assert "serving = true (applied) -> false (live)" in result.words
    assert at.run("plan", profile, DETAILED).code == 0, "a plan asks no endpoint that has served"
    assert at.run("apply", "-refresh-only", "-auto-approve", profile).code == 0
    assert "1 to restart" in at.run("plan", profile).out
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(3600)
    assert at.run("drift", profile).code == 0


def test_a_slice_that_was_taken_away_is_told_as_lost_and_asked_for_again(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (name,) = at.slices
    at.emulator.preempt(name)
    at.clock.sleep(60)
    document = json.loads(at.run("drift", "-json", profile).out)
    (row,) = document["resource_drift"]
    assert (row["address"], row["kind"], row["change"]["actions"]) == ("gemma[0]", "lost", ["delete"])
    planned = at.run("plan", profile)
    assert "# gemma[0] has lost its slice" in planned.out
    assert "Plan: 1 to add" in planned.out


def test_drift_in_json_tells_both_sides(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _set(at, "labels", team="ads")
    document = json.loads(at.run("drift", "-json", profile).out)
    assert (document["mode"], document["is_empty"]) == ("refresh-only", False)
    (row,) = document["resource_drift"]
    assert (row["kind"], row["change"]["actions"]) == ("changed", ["update"])
    assert row["change"]["before"]["placement"]["labels"] == {"team": "search"}
    assert row["change"]["after"]["placement"]["labels"] == {"team": "ads"}
    assert document["resource_changes"] == []


def test_what_matters_to_no_change_is_told_by_drift_and_not_by_a_plan(cli: Open) -> None:
    at = cli()
    profile = _deployed(at, LABELLED + "lifecycle: {ignore_changes: [placement.labels]}\n")
    _set(at, "labels", team="ads")
    planned = at.run("plan", profile, DETAILED)
    assert planned.code == 0, planned.all
    assert OUTSIDE not in planned.out
    assert at.run("drift", profile).code == 2
    at.write(LABELLED.replace("16384", "8192") + "lifecycle: {ignore_changes: [placement.labels]}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert _node(at).spec["labels"]["team"] == "ads", "what is ignored stays as it is"


def test_refresh_only_writes_down_what_is_there_and_touches_nothing(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _set(at, "labels", team="ads")
    before, writes = _node(at).spec, len(_writes(at))
    result = at.run("apply", "-refresh-only", profile)
    assert result.code == 1
    assert "Approval needs an interactive terminal" in result.err
    applied = at.run("apply", "-refresh-only", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "Done! The state records the drift. No resource was changed." in applied.out
    assert _node(at).spec == before
    assert len(_writes(at)) == writes
    assert at.run("drift", profile).code == 0
    planned = at.run("plan", profile)
    assert '~ placement.labels.team = "ads" -> "search"' in planned.words
    assert OUTSIDE not in planned.out
    assert at.run("apply", "-refresh-only", profile).code == 0, "nothing to approve"


@pytest.mark.parametrize("ends", ["preempted", "deleted"])
def test_a_loss_that_was_written_down_is_no_news_and_still_made_good(cli: Open, ends: str) -> None:
    at = cli()
    profile = _deployed(at)
    (name,) = at.slices
    at.emulator.preempt(name)
    at.clock.sleep(60)
    if ends == "deleted":
        slices = at.emulator._cloud.slices
        for key in [key for key in slices if key.endswith(name)]:
            del slices[key]
        assert "has been deleted" in at.run("drift", profile).out
    assert at.run("apply", "-refresh-only", "-auto-approve", profile).code == 0
    result = at.run("drift", profile)
    assert result.code == 2, "written down or not, what was applied is not there"
    assert "# gemma[0] has no slice\n" in result.out
    assert f"- gemma[0] = {name} (us-east5-a)" in result.out
    assert "The state already records that a slice is missing" in result.out
    before = at.state()
    again = at.run("apply", "-refresh-only", profile)
    assert again.code == 0, "there is nothing to approve"
    assert "records them" not in again.out
    assert at.state() == before
    assert "Objects have changed outside" not in at.run("plan", profile).out, "it is no news"
    assert "Plan: 1 to add" in at.run("plan", profile).out
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run("drift", profile).code == 0


GONE = ["preempted", "preempted, and written down", "deleted", "looked for", "destroyed", "destroyed, half"]


@pytest.mark.parametrize("how", GONE)
@pytest.mark.parametrize("later", [60.0, 7200.0])
def test_what_was_applied_and_is_not_there_is_drift_for_both_commands(cli: Open, how: str, later: float) -> None:
    at = cli()
    profile = _deployed(at)
    (name,) = at.slices
    _take_away(at, profile, how)
    at.clock.sleep(later)
    result = at.run("drift", profile)
    assert result.code == 2, result.all
    assert "# gemma[0] has" in result.out
    assert how == "destroyed" or name in result.out
    (row,) = json.loads(at.run("drift", "-json", profile).out.splitlines()[-1])["resource_drift"]
    assert (row["address"], row["change"]["actions"]) == ("gemma[0]", ["delete"])
    scheduled = at.run("ci", "drift", DETAILED, profile)
    assert scheduled.code == 2, scheduled.all
    assert "gemma: lost" in scheduled.out
    at.emulator._cloud.troubles.clear()
    assert at.run("apply", "-auto-approve", profile).code == 0
    at.clock.sleep(3600)
    assert at.run("drift", profile).code == 0
    assert at.run("ci", "drift", DETAILED, profile).code == 0


def _take_away(at: CommandLine, profile: str, how: str) -> None:
    (name,) = at.slices
    match how:
        case "destroyed":
            assert at.run("destroy", "-auto-approve", profile).code == 0
            return
        case "destroyed, half":
            at.killed(5, "destroy", "-auto-approve", profile)
            return
    at.emulator.preempt(name)
    at.clock.sleep(60)
    match how:
        case "preempted, and written down":
            assert at.run("apply", "-refresh-only", "-auto-approve", profile).code == 0
        case "deleted":
            slices = at.emulator._cloud.slices
            for key in [key for key in slices if key.endswith(name)]:
                del slices[key]
        case "looked for":
            at.emulator.script({"fault": "wait-for-ever"})
            assert at.run("apply", "-auto-approve", "-timeout", "10m", profile).code == 12


@pytest.mark.parametrize("change", [("16384", "8192"), ("v6e-1", "v6e-4")])
def test_what_an_apply_replaces_or_restarts_is_not_missing_meanwhile(cli: Open, change: tuple[str, str]) -> None:
    at = cli(timings={"waiting": 600}, boot={"boot_seconds": 300})
    profile = _deployed(at, LABELLED + "lifecycle: {replace: destroy-before-create}\n")
    at.write(at.folder.joinpath(profile).read_text(encoding="utf-8").replace(*change))
    at.killed(120, "apply", "-auto-approve", profile)
    assert at.run("drift", profile).code == 0
    assert at.run("ci", "drift", DETAILED, profile).code == 0


def test_a_replica_that_only_the_profile_has_is_not_missing(cli: Open) -> None:
    at = cli()
    _deployed(at)
    assert at.run("drift", at.write(LABELLED + "replicas: 2\n")).code == 0


def test_a_refresh_only_plan_can_be_saved_and_is_refused_where_the_world_moved_on(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    _set(at, "labels", team="ads")
    assert at.run("plan", "-refresh-only", "-out", "it.plan", profile, DETAILED).code == 2
    assert '"ads" (live)' in at.run("show", "it.plan").out
    _set(at, "labels", team="sales")
    assert at.run("apply", "it.plan").code == 11
    _set(at, "labels", team="ads")
    assert at.run("apply", "it.plan").code == 0
    assert at.run("apply", "it.plan").code == 11


def test_a_moment_after_an_apply_nothing_has_drifted(cli: Open) -> None:
    at = cli()
    profile = at.write(LABELLED)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("drift", profile).code == 0
    at.write(LABELLED.replace("16384", "8192").replace("search", "ads"))
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("drift", profile).code == 0


def test_what_was_adopted_is_as_it_was_found(cli: Open) -> None:
    at = cli()
    profile = _deployed(at)
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    assert at.run("apply", "-adopt", "-auto-approve", profile).code == 0
    at.clock.sleep(3600)
    assert at.run("drift", profile).code == 0


def test_a_request_that_still_waits_has_not_drifted(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "10m", profile).code == 12
    assert at.run("drift", profile).code == 0


def test_without_a_state_there_is_nothing_to_have_drifted(cli: Open) -> None:
    at = cli()
    assert at.run("drift", at.write()).code == 0
    assert at.run("apply", "-refresh-only", "-auto-approve", "gemma.yaml").code == 0
    assert not (at.folder / ".tpudeploy").exists()


@pytest.mark.parametrize("other", ["-destroy", "-adopt", "-replace=gemma", "-refresh=false"])
def test_refresh_only_goes_with_nothing_that_does_more(cli: Open, other: str) -> None:
    at = cli()
    result = at.run("plan", "-refresh-only", other, at.write())
    assert result.code == 1
    assert "-refresh-only" in result.err


def _writes(at: CommandLine) -> list[str]:
    return [r.path for r in at.emulator.requests if r.method != "GET" and ":getGuestAttributes" not in r.path]
