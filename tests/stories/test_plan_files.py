"""Saved plans: shown to one, applied by another, exactly as they stand, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

import tpudeploy as td

NEXT = PROFILE.replace("16384", "8192")
STALE = 11


def _planned(at: CommandLine, *profiles: str) -> dict[str, Any]:
    planned = at.run("plan", "-out", "it.plan", *(profiles or ("gemma.yaml",)))
    assert planned.code == 0, planned.all
    tree: dict[str, Any] = json.loads((at.folder / "it.plan").read_text("utf-8"))
    return tree


def _deployed(at: CommandLine) -> None:
    applied = at.run("apply", "-auto-approve", at.write())
    assert applied.code == 0, applied.all


def test_a_saved_plan_is_applied_without_a_question_and_without_the_profile(cli: Open) -> None:
    at = cli()
    profile = at.write()
    planned = at.run("plan", "-out", "it.plan", profile, "-detailed-exitcode")
    assert planned.code == 2
    assert "Saved the plan to: it.plan" in planned.err
    assert "tpudeploy apply it.plan" in planned.err
    assert not at.requested_zones()
    (at.folder / profile).unlink()
    applied = at.run("apply", "it.plan")
    assert applied.code == 0, applied.all
    assert "Done! Resources: 1 added" in applied.out
    assert at.requested_zones() == ["us-east5-a"]
    at.write()
    assert at.run("plan", profile, "-detailed-exitcode").code == 0


def test_what_is_applied_is_what_was_saved_and_not_what_the_profile_says_by_then(cli: Open) -> None:
    at = cli()
    _deployed(at)
    at.write(NEXT)
    _planned(at)
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    applied = at.run("apply", "it.plan")
    assert applied.code == 0, applied.all
    assert "1 restarted" in applied.out
    (record,) = at.state()["records"]
    assert record["attempts"][0]["spec"]["serving.max_model_len"] == 8192
    assert record["attempts"][0]["spec"]["tpu.type"] == "v6e-1"


def test_a_removal_can_be_saved(cli: Open) -> None:
    at = cli()
    _deployed(at)
    assert at.run("plan", "-destroy", "-out", "it.plan", "gemma.yaml").code == 0
    assert at.run("apply", "it.plan").code == 0
    assert not at.slices


def test_an_adoption_can_be_saved(cli: Open) -> None:
    at = cli()
    _deployed(at)
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    before = dict(at.slices)
    assert at.run("plan", "-adopt", "-out", "it.plan", "gemma.yaml").code == 0
    applied = at.run("apply", "it.plan")
    assert applied.code == 0, applied.all
    assert "Adopted" in applied.err
    assert dict(at.slices) == before
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def test_a_state_that_moved_on_makes_it_stale(cli: Open) -> None:
    at = cli()
    _deployed(at)
    at.write(NEXT)
    _planned(at)
    at.write(PROFILE + "  labels: {team: search}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    before = at.state()
    stale = at.run("apply", "it.plan")
    assert stale.code == STALE
    assert "it.plan is stale: the state of gemma was changed after the plan was made" in stale.err
    assert at.state() == before


def test_it_is_applied_once(cli: Open) -> None:
    at = cli()
    at.write()
    _planned(at)
    assert at.run("apply", "it.plan").code == 0
    again = at.run("apply", "it.plan")
    assert again.code == STALE
    assert "it was made for another state of gemma" in again.err
    assert len(at.slices) == 1


def test_another_lineage_is_not_its_state(cli: Open) -> None:
    at = cli()
    _deployed(at)
    at.write(NEXT)
    _planned(at)
    path = at.folder / ".tpudeploy" / "state" / "gemma.json"
    path.write_text(json.dumps({**at.state(), "lineage": "0" * 32}), "utf-8")
    stale = at.run("apply", "it.plan")
    assert stale.code == STALE
    assert "the state here has another lineage (00000000)" in stale.err
    path.unlink()
    assert "there is no state for it here" in at.run("apply", "it.plan").err


def test_a_slice_that_changed_since_makes_it_stale_though_the_state_did_not(cli: Open) -> None:
    at = cli()
    _deployed(at)
    at.write(NEXT)
    _planned(at)
    (name,) = at.slices
    (node,) = at.emulator._cloud.nodes.values()
    node.spec = {**node.spec, "labels": {**node.spec["labels"], "team": "ads"}}
    stale = at.run("apply", "it.plan")
    assert stale.code == STALE
    assert f"it.plan is stale: {name} changed after the plan was made" in stale.err


def test_a_slice_that_was_preempted_since_makes_it_stale(cli: Open) -> None:
    at = cli()
    _deployed(at)
    at.write(NEXT)
    _planned(at)
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(60)
    assert at.run("apply", "it.plan").code == STALE


def test_of_several_deployments_none_is_begun_where_one_is_stale(cli: Open) -> None:
    at = cli()
    first = at.write(PROFILE.replace("name: gemma", "name: first"), "first.yaml")
    second = at.write(PROFILE.replace("name: gemma", "name: second"), "second.yaml")
    _planned(at, first, second)
    assert at.run("apply", "-auto-approve", second).code == 0
    assert at.run("apply", "it.plan").code == STALE
    assert not (at.folder / ".tpudeploy" / "state" / "first.json").exists()
    assert len(at.slices) == 1


def test_a_stopped_apply_of_it_goes_on_where_it_stopped(cli: Open) -> None:
    at = cli(trouble=[{"fault": "wait-for-ever", "times": 1}])
    at.write()
    _planned(at)
    assert at.run("apply", "it.plan", "-timeout", "10m").code == 12
    before = dict(at.slices)
    assert at.run("apply", "it.plan", "-timeout", "10m").code == 12
    assert dict(at.slices) == before


def test_a_request_that_is_granted_meanwhile_is_no_other_world(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 600})
    at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "1s", "gemma.yaml").code == 12
    _planned(at)
    at.clock.sleep(1200)
    assert at.run("apply", "it.plan").code == 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: len(text) // 2], "JSONDecodeError"),
        (lambda text: text.replace('"applyable": true', '"applyable": false'), "what it shows is not what"),
        (lambda text: text.replace('"v6e-1"', '"v6e-8"'), "it was changed after it was saved"),
        (lambda text: text.replace("tpudeploy.plan/1", "tpudeploy.plan/2"), "this tpudeploy reads `tpudeploy.plan/1`"),
        (lambda _: "{}", "KeyError"),
        (lambda _: "[" * 100_000, "is not a saved plan"),
    ],
)
def test_a_damaged_or_newer_plan_is_told_as_such(cli: Open, damage: Any, words: str) -> None:
    at = cli()
    at.write()
    _planned(at)
    path = at.folder / "it.plan"
    path.write_text(damage(path.read_text("utf-8")), "utf-8")
    for command in ("show", "apply"):
        result = at.run(command, "it.plan")
        if command == "apply" and not path.read_text("utf-8").startswith('{\n "format": "tpudeploy'):
            continue  # it is taken for a profile, and refused as one
        assert result.code == 1
        assert words in result.err, result.err
        assert "Traceback" not in result.all
    assert not at.requested_zones()


def test_a_plan_that_is_no_file_is_told_as_such(cli: Open) -> None:
    at = cli()
    for name in ("absent.plan", "."):
        result = at.run("show", name)
        assert result.code == 1
        assert "cannot be read" in result.err
    assert at.run("apply", "absent.plan").code == 1


def test_a_plan_is_never_saved_over_a_profile(cli: Open) -> None:
    at = cli()
    profile = at.write()
    result = at.run("plan", "-out", profile, profile)
    assert result.code == 1
    assert "is not a saved plan, so it was not overwritten" in result.err
    assert (at.folder / profile).read_text("utf-8") == PROFILE
    _planned(at)
    _planned(at)  # over an older plan it may be
    assert at.run("plan", "-out", ".", profile).code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gemma.yaml",), "must be applied alone"),
        (("-set", "tpu.type=v6e-4"), "-set would change it"),
        (("-adopt",), "-adopt would change it"),
    ],
)
def test_what_would_change_a_saved_plan_does_not_go_with_it(cli: Open, words: tuple[str, ...], message: str) -> None:
    at = cli()
    at.write()
    _planned(at)
    result = at.run("apply", "it.plan", *words)
    assert result.code == 1
    assert message in result.err
    assert not at.requested_zones()


def test_a_variable_that_both_steps_of_a_pipeline_share_changes_no_saved_plan(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    at.write()
    monkeypatch.setenv("TPUDEPLOY_SET", "serving.max_model_len=8192")
    monkeypatch.setenv("TPUDEPLOY_TARGET", "gemma[0]")
    _planned(at)
    assert at.run("apply", "it.plan").code == 0
    (record,) = at.state()["records"]
    assert record["attempts"][0]["spec"]["serving.max_model_len"] == 8192
    assert at.run("apply", "it.plan", "-set", "tpu.type=v6e-4").code == 1


def test_a_forbidden_plan_can_be_saved_and_shown_but_not_applied(cli: Open) -> None:
    at = cli()
    protected = PROFILE + "lifecycle: {prevent_destroy: true}\n"
    at.write(protected)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.write(protected.replace("v6e-1", "v6e-4"))
    planned = at.run("plan", "-out", "it.plan", "gemma.yaml")
    assert planned.code == 13
    assert "It cannot be applied" in planned.err
    assert json.loads(at.run("show", "it.plan", "-json").out)["errored"] is True
    assert at.run("apply", "it.plan").code == 13


def test_show_prints_the_plan_as_it_was_shown_and_its_json_as_it_was_printed(cli: Open) -> None:
    at = cli()
    _deployed(at)
    at.write(NEXT)
    first = at.run("plan", "-out", "it.plan", "gemma.yaml")
    (at.folder / "gemma.yaml").unlink()
    result = at.run("show", "it.plan")
    assert result.code == 0
    assert result.out in first.out
    assert "gemma.yaml:9" in result.out
    at.write(NEXT)
    document = json.loads(at.run("show", "it.plan", "-json").out)
    assert document == json.loads(at.run("plan", "-json", "gemma.yaml").out)
    saved = json.loads((at.folder / "it.plan").read_text("utf-8"))
    assert {key: value for key, value in saved.items() if key not in {"saved", "digest"}} == document


def test_the_json_is_what_policy_tools_read(cli: Open) -> None:
    at = cli()
    at.write()
    created = _planned(at)
    (row,) = created["resource_changes"]
    assert (row["address"], row["type"], row["index"]) == ("gemma[0]", "tpudeploy_replica", 0)
    assert row["change"]["actions"] == ["create"]
    assert row["change"]["before"] is None
    assert row["change"]["after"]["tpu"]["type"] == "v6e-1"
    assert row["change"]["after_unknown"] == {"slice_name": True, "zone": True}
    assert (created["applyable"], created["complete"], created["errored"]) == (True, True, False)
    (check,) = created["checks"]
    assert (check["address"]["name"], check["status"]) == ("TPU2001", "pass")

    assert at.run("apply", "it.plan").code == 0
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    (row,) = _planned(at)["resource_changes"]
    assert row["change"]["actions"] == ["create", "delete"]
    assert row["change"]["replace_paths"] == [["tpu", "type"]]
    assert row["action_reason"] == "replace_because_cannot_update"
    assert row["change"]["before"]["tpu"]["type"] == "v6e-1"
    at.write(NEXT)
    (row,) = _planned(at)["resource_changes"]
    assert (row["change"]["actions"], row["action_reason"]) == (["update"], "restart_because_of_serving_change")
    at.write()
    unchanged = _planned(at)
    assert unchanged["resource_changes"][0]["change"]["actions"] == ["no-op"]
    assert unchanged["applyable"] is False


def test_show_without_a_plan_prints_what_the_states_remember(cli: Open) -> None:
    at = cli()
    assert at.run("show").out == "The states here hold no slice.\n"
    _deployed(at)
    (name,) = at.slices
    requests = len(at.emulator.requests)
    result = at.run("show")
    assert f"gemma[0] = {name} (us-east5-a, spot)" in result.out
    assert 'tpu.type                        = "v6e-1"' in result.out
    document = json.loads(at.run("show", "-json").out)
    (resource,) = document["values"]["root_module"]["resources"]
    assert resource["values"]["slice_name"] == name
    assert resource["values"]["serving"]["max_model_len"] == 16384
    assert document["states"][0]["serial"] == at.state()["serial"]
    assert len(at.emulator.requests) == requests


def test_the_library_saves_loads_and_applies_the_same(cli: Open, tmp_path: Path) -> None:
    at = cli()
    profile = td.Profile.load(at.folder / at.write())
    with td.Workspace.open(at.folder, clock=at.clock, patience=at.patience) as workspace:
        plan = workspace.plan([profile])
        plan.save(tmp_path / "it.plan")
        loaded = td.Plan.load(tmp_path / "it.plan")
        assert isinstance(plan, td.Plan)
        assert loaded == plan
        assert loaded.to_dict() == plan.to_dict()
        assert workspace.apply(loaded).error is None
        with pytest.raises(td.errors.StalePlan):
            workspace.apply(td.Plan.load(tmp_path / "it.plan"))


def test_a_plan_for_states_in_a_bucket_finds_them_again(cli: Open) -> None:
    at = cli()
    profile = at.write()
    assert at.run("plan", "-out", "it.plan", "--backend", "gs://states/here", profile).code == 0
    applied = at.run("apply", "it.plan")
    assert applied.code == 0, applied.all
    assert not (at.folder / ".tpudeploy" / "state" / "gemma.json").exists()
    assert at.run("plan", "-detailed-exitcode", "--backend", "gs://states/here", profile).code == 0
