"""A state that is gone: no second slice is bought beside the first, and the first can be taken over or given back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open
from overtaken import Overtaken

from tpudeploy import Profile, Workspace

STOP = "that no state here tracks"


def bereft(at: CommandLine, text: str = PROFILE) -> list[str]:
    """A profile that serves, whose state is gone; its slices."""
    assert at.run("apply", "-auto-approve", at.write(text)).code == 0
    lose(at)
    return sorted(at.slices)


def lose(at: CommandLine) -> None:
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()


def lists(at: CommandLine) -> int:
    return sum(r.method == "GET" and r.resource.endswith("/queuedResources") for r in at.emulator.requests)


def test_no_second_slice_is_bought_beside_one_that_no_state_remembers(cli: Open) -> None:
    at = cli()
    (name,) = bereft(at)
    for command in (("plan",), ("apply", "-auto-approve")):
        result = at.run(*command, "gemma.yaml")
        assert result.code == 13
        assert f"gemma has 1 slice {STOP}: {name} (us-east5-a, ACTIVE, $1.40/h). [TPU3010]" in result.err
        assert "`tpudeploy apply -adopt` adopts them" in result.err
    assert at.requested_zones() == ["us-east5-a"]
    assert at.slices == {name: "ACTIVE"}
    assert "tpudeploy gc -foreign PROFILE" in at.run("explain", "TPU3010").out


def test_a_destroy_does_not_say_that_there_is_nothing(cli: Open) -> None:
    at = cli()
    (name,) = bereft(at)
    for command in (("destroy", "-auto-approve"), ("plan", "-destroy")):
        result = at.run(*command, "gemma.yaml")
        assert result.code == 13
        assert f"{STOP}: {name}" in result.err
        assert "`tpudeploy gc -foreign`, with this profile, removes them." in result.err
    assert at.run("gc", "-foreign", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == {}
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0


def test_what_serves_is_adopted_as_it_stands(cli: Open) -> None:
    at = cli(nodes="real")
    (name,) = bereft(at)
    planned = at.run("plan", "-adopt", "-detailed-exitcode", "gemma.yaml")
    assert planned.code == 2
    assert "gemma[0] will be adopted unchanged" in planned.out
    assert "Plan: 0 to add, 1 to change, 0 to destroy." in planned.out
    assert not (at.folder / ".tpudeploy" / "state" / "gemma.json").exists()

    before = len(at.emulator.requests)
    adopted = at.run("apply", "-adopt", "-auto-approve", "gemma.yaml")
    assert adopted.code == 0, adopted.all
    assert f"gemma[0]: Adopted {name} in us-east5-a: it is now in the state" in adopted.err
    assert 'gemma[0] endpoint = "http://' in adopted.out
    changing = [r for r in at.emulator.requests[before:] if r.method != "GET" and "getGuestAttributes" not in r.path]
    assert changing == []
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    assert "gemma[0] serving" in at.run("status", "gemma.yaml").words
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert at.slices == {}


def test_an_adoption_wants_its_yes_too(cli: Open) -> None:
    at = cli()
    bereft(at)
    result = at.run("apply", "-adopt", "gemma.yaml")
    assert result.code == 1
    assert "pass -auto-approve" in result.err
    assert not (at.folder / ".tpudeploy" / "state" / "gemma.json").exists()


@pytest.mark.parametrize("nodes", ["real", "simulated"])
def test_another_server_than_the_profile_wants_is_restarted_and_keeps_the_chips(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes)
    names = bereft(at)
    at.write(PROFILE.replace("16384", "8192"))
    planned = at.run("plan", "-adopt", "gemma.yaml")
    assert planned.code == 0, planned.all
    assert "gemma[0] will be restarted in place" in planned.out
    assert "found in the cloud: no state tracked it" in planned.out
    assert "serving.max_model_len = 8192" in planned.words
    assert "placement" not in planned.out
    assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
    assert sorted(at.slices) == names
    assert sum(r.method == "PATCH" for r in at.emulator.requests) == 1
    assert not any(r.resource.endswith(":reset") for r in at.emulator.requests)
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


@pytest.mark.parametrize(
    ("change", "attribute"),
    [
        (("v6e-1", "v6e-4"), 'tpu.type = "v6e-1" -> "v6e-4" # forces replacement'),
        (("tpu:\n", "tpu:\n  boot_disk_size: 300GiB\n"), 'tpu.boot_disk_size = "200GiB" -> "300GiB"'),
        (("placement:\n", "placement:\n  network: {external_ip: false}\n"), "external_ip = true -> false # forces"),
        (("us-east5-a, us-east5-b, ", ""), '["us-east5-a"] -> ["europe-west4-a"] # forces replacement'),
        (("[spot]", "[on-demand]"), '["spot"] -> ["on-demand"] # forces replacement'),
    ],
    ids=lambda value: str(value[0] if isinstance(value, tuple) else "")[:10],
)
def test_another_slice_than_the_profile_wants_is_replaced(cli: Open, change: tuple[str, str], attribute: str) -> None:
    at = cli()
    (old,) = bereft(at)
    at.write(PROFILE.replace(*change))
    planned = at.run("plan", "-adopt", "gemma.yaml")
    assert "gemma[0] must be replaced" in planned.out
    assert attribute in planned.words
    replaced = at.run("apply", "-adopt", "-auto-approve", "gemma.yaml")
    assert replaced.code == 0, replaced.all
    assert old not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_labels_and_tags_are_adopted_as_they_are_and_changed_in_place(cli: Open) -> None:
    at = cli()
    tagged = PROFILE + "  labels: {team: TEAM, tier: one}\n  network: {tags: [vllm]}\n"
    assert at.run("apply", "-auto-approve", at.write(tagged.replace("TEAM", "at-first"))).code == 0
    names = bereft(at, tagged.replace("TEAM", "search"))
    at.clock.sleep(60)  # a patch takes a while to show
    assert "will be adopted unchanged" in at.run("plan", "-adopt", "gemma.yaml").out
    at.write(PROFILE + "  labels: {team: ads, cost: low}\n  network: {tags: [web]}\n")
    planned = at.run("plan", "-adopt", "gemma.yaml")
    assert "gemma[0] will be updated in place" in planned.out
    assert 'placement.labels.team = "search" -> "ads"' in planned.words
    assert '- placement.labels.tier = "one" -> null' in planned.words
    assert '+ placement.labels.cost = "low"' in planned.words
    assert 'placement.network.tags = ["vllm"] -> ["web"]' in planned.words
    assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
    assert sorted(at.slices) == names
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0


def test_a_request_that_waits_keeps_its_place(cli: Open) -> None:
    at = cli(timings={"waiting": 3600.0})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "10m", profile).code == 12
    (name,) = at.slices
    lose(at)
    assert f"{name} (us-east5-a, WAITING_FOR_RESOURCES)" in at.run("plan", profile).err
    planned = at.run("plan", "-adopt", profile)
    assert "gemma[0] will be completed" in planned.out
    adopted = at.run("apply", "-adopt", "-auto-approve", profile)
    assert adopted.code == 0, adopted.all
    assert at.requested_zones() == ["us-east5-a"]
    assert at.slices == {name: "ACTIVE"}


def test_every_replica_is_adopted_and_surplus_ones_are_shown_to_go(cli: Open) -> None:
    at = cli()
    names = bereft(at, PROFILE + "replicas: 3\n")
    assert "gemma has 3 slices that no state here tracks" in at.run("plan", "gemma.yaml").err
    at.write(PROFILE + "replicas: 2\n")
    planned = at.run("plan", "-adopt", "gemma.yaml")
    assert planned.out.count("will be adopted unchanged") == 2
    assert "gemma[2] will be destroyed" in planned.out
    assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
    assert sorted(at.slices) == names[:2]


def test_the_names_that_follow_an_adoption_were_never_used(cli: Open) -> None:
    """Whoever still has the lost state would give the same ones."""
    at = cli()
    (old,) = bereft(at)
    assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    (new,) = at.slices
    assert new.rsplit("-", 3)[1] != old.rsplit("-", 3)[1]


def test_what_is_adopted_is_needed_and_gc_leaves_it(cli: Open) -> None:
    at = cli()
    names = bereft(at)
    assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 0, result.all
    assert "1 of them needed" in result.out
    assert sorted(at.slices) == names


def test_a_husk_stops_nothing_but_is_told_for_it_uses_quota(cli: Open) -> None:
    at = cli()
    (name,) = bereft(at)
    at.emulator.preempt(name)
    at.clock.sleep(120)
    result = at.run("plan", "gemma.yaml")
    assert result.code == 0, result.all
    assert (
        f"Warning: gemma has slices that no state here tracks. They no longer run, and still use quota: {name} (us-east5-a, SUSP"
        in result.err
    )
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert sorted(at.slices.values()) == ["ACTIVE", "SUSPENDED"]


def test_an_adopted_husk_is_swept_and_another_slice_asked_for(cli: Open) -> None:
    at = cli(quota=[{"class": "preemptible", "region": "*", "limit": 1}])
    (name,) = bereft(at)
    at.emulator.preempt(name)
    at.clock.sleep(120)
    adopted = at.run("apply", "-adopt", "-auto-approve", "gemma.yaml")
    assert adopted.code == 0, adopted.all
    assert name not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_slice_that_vanishes_while_the_question_stands_makes_the_plan_stale(cli: Open) -> None:
    at = cli()
    (name,) = bereft(at)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")], adopt=True)
        assert plan.goals[0].adopts == (name,)
        assert plan.needs_approval
        assert at.run("gc", "-foreign", "-auto-approve").code == 0
        with pytest.raises(Exception, match="no longer match what the plan adopts"):
            workspace.apply(plan)
    assert at.slices == {}


def test_a_state_that_is_written_while_we_look_is_believed(cli: Open) -> None:
    at = cli()
    at.write()
    with Overtaken(at.folder, clock=at.clock, project="emulated") as workspace:
        workspace.adapters.at = at
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")])
    assert plan.is_empty
    assert "TPU3010" not in {d.code for d in plan.diagnostics}


def test_two_who_adopt_at_once_come_to_the_same_end(cli: Open) -> None:
    at = cli()
    names = bereft(at)
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        plan = workspace.plan([Profile.load(at.folder / "gemma.yaml")], adopt=True)
        assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
        lineage = at.state()["lineage"]
        assert workspace.apply(plan).error is None
    assert sorted(at.slices) == names
    assert at.state()["lineage"] == lineage


@pytest.mark.parametrize("fault", ["iam-denied", "unavailable"])
def test_where_nobody_can_look_the_plan_goes_on_and_says_so(cli: Open, fault: str) -> None:
    at = cli(trouble=[{"fault": fault, "method": "queuedResources.list"}])
    result = at.run("plan", at.write())
    assert result.code == 0
    assert "Warning: gemma may have slices that no state here tracks: Could not list" in result.err
    assert "[TPU3011]" in result.err
    assert "Plan: 1 to add" in result.out


def test_of_a_fleet_the_first_few_are_named_where_nobody_can_look(cli: Open) -> None:
    at = cli(trouble=[{"fault": "iam-denied", "method": "queuedResources.list"}])
    (at.folder / "fleet").mkdir()
    for number in range(1, 8):
        at.write(PROFILE.replace("name: gemma", f"name: gemma{number}"), f"fleet/gemma{number}.yaml")
    result = at.run("plan", "fleet")
    assert result.code == 0
    assert "Warning: gemma1, gemma2, gemma3, gemma4 and 3 more may have slices that no state here tracks" in result.err


def test_a_passing_fault_does_not_keep_the_slice_from_being_found(cli: Open) -> None:
    at = cli()
    bereft(at)
    at.emulator.script({"fault": "unavailable", "method": "queuedResources.list", "times": 2})
    assert at.run("plan", "gemma.yaml").code == 13


def test_a_silent_zone_is_named_for_it_may_hold_one(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unreachable", "zones": "us-east5-b"}])
    result = at.run("plan", at.write())
    assert result.code == 0
    assert "may have slices that no state here tracks: no answer from us-east5-b." in result.err


def test_only_a_deployment_without_a_state_is_looked_for_and_once_a_project(cli: Open) -> None:
    at = cli()
    other = at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    gemma = at.write()
    assert at.run("plan", gemma, other).code == 0
    assert lists(at) == 1
    assert not any("/nodes" in r.path for r in at.emulator.requests)
    assert at.run("apply", "-auto-approve", gemma, other).code == 0
    looked = lists(at)
    assert at.run("plan", gemma, other).code == 0
    assert lists(at) == looked
    # A removal ends with a look for its own label, which deployments that end at the same time share.
    assert at.run("destroy", "-auto-approve", gemma, other).code == 0
    assert looked < lists(at) <= looked + 2


def test_slices_of_another_name_are_no_concern(cli: Open) -> None:
    at = cli()
    bereft(at)
    other = at.write(PROFILE.replace("name: gemma", "name: gemma-two"), "other.yaml")
    assert at.run("plan", other).code == 0


def test_a_colleague_of_another_folder_is_not_bought_beside(
    cli: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    hers = replace(at, folder=tmp_path_factory.mktemp("hers"))
    result = hers.run("apply", "-auto-approve", hers.write())
    assert result.code == 13
    assert "If they belong to someone else, use their state or another name." in result.err
    assert len(at.slices) == 1


def test_the_same_name_twice_is_adopted_once_and_the_other_stops_it(cli: Open) -> None:
    """Two zones can hold one name: a restored state counts its attempts anew."""
    at = cli()
    (name,) = bereft(at)
    first = next(iter(at.emulator._cloud.slices.values()))
    second = replace(first, name=first.name.replace("us-east5-a", "us-east5-b"), zone="us-east5-b", state="ACCEPTED")
    at.emulator._cloud.slices[second.name] = second
    result = at.run("apply", "-adopt", "-auto-approve", "gemma.yaml")
    assert result.code == 13
    assert f"gemma has 1 slice {STOP}: {name} (us-east5-b, ACCEPTED)" in result.err


def test_json_says_what_is_adopted(cli: Open) -> None:
    at = cli()
    (name,) = bereft(at)
    plan = json.loads(at.run("plan", "-adopt", "-json", "gemma.yaml").out)
    assert plan["goals"][0]["adopts"] == [name]
    stopped = json.loads(at.run("plan", "-json", "gemma.yaml").out)
    assert next((d["code"], d["severity"]) for d in stopped["diagnostics"]) == ("TPU3010", "error")


def test_what_the_cloud_says_nothing_of_is_taken_to_be_as_wanted_and_its_server_restarted(cli: Open) -> None:
    at = cli(boot={"guest_attributes": False})
    names = bereft(at)
    (slice_,) = at.emulator._cloud.slices.values()
    slice_.body = {k: v for k, v in slice_.body.items() if k != "tpu"}
    for node in at.emulator._cloud.nodes.values():
        node.spec = {k: v for k, v in node.spec.items() if k != "metadata"}
    planned = at.run("plan", "-adopt", "gemma.yaml")
    assert planned.code == 0, planned.all
    assert "gemma[0] will be restarted in place" in planned.out
    assert at.slices == dict.fromkeys(names, "ACTIVE")


def test_a_machine_that_runs_another_server_than_its_metadata_says_is_restarted(cli: Open) -> None:
    """A run that was ended between telling the node and booting it anew."""
    at = cli()
    bereft(at)
    changed = at.write(PROFILE.replace("16384", "8192"))
    request = json.loads(at.run("render", changed, "request").out)
    result = request["tpu"]["nodeSpec"][0]["node"]["metadata"]
    (node,) = at.emulator._cloud.nodes.values()
    node.spec = {**node.spec, "metadata": result}
    assert "gemma[0] will be restarted in place" in at.run("plan", "-adopt", changed).out
    assert at.run("apply", "-adopt", "-auto-approve", changed).code == 0
    assert at.run("plan", "-detailed-exitcode", changed).code == 0


def test_what_google_fills_in_by_itself_is_no_difference(cli: Open) -> None:
    at = cli()
    bereft(at)
    (slice_,) = at.emulator._cloud.slices.values()
    node = slice_.body["tpu"]["nodeSpec"][0]["node"]
    node["networkConfig"] |= {"network": "projects/emulated/global/networks/default", "subnetwork": "default"}
    node["serviceAccount"] = {"email": "1-compute@developer.gserviceaccount.com"}
    assert "will be adopted unchanged" in at.run("plan", "-adopt", "gemma.yaml").out


def test_a_network_that_google_names_in_full_is_the_same_network(cli: Open) -> None:
    at = cli()
    bereft(at, PROFILE + "  network: {network: vpc}\n")
    (slice_,) = at.emulator._cloud.slices.values()
    slice_.body["tpu"]["nodeSpec"][0]["node"]["networkConfig"]["network"] = "projects/emulated/global/networks/vpc"
    assert "will be adopted unchanged" in at.run("plan", "-adopt", "gemma.yaml").out
    at.write(PROFILE + "  network: {network: other}\n")
    planned = at.run("plan", "-adopt", "gemma.yaml")
    assert 'network.network = "projects/emulated/global/networks/vpc" -> "other" # forces replacement' in planned.words


def test_the_endpoint_file_never_goes_back_to_an_earlier_generation(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a"}])
    bereft(at)
    before = json.loads(at.run("output", "gemma", "-json").out)["generation"]
    assert at.run("apply", "-adopt", "-auto-approve", "gemma.yaml").code == 0
    assert json.loads(at.run("output", "gemma", "-json").out)["generation"] >= before > 1


def test_a_state_is_lost_with_its_folder_too(cli: Open, tmp_path: Path) -> None:
    at = cli()
    bereft(at)
    (tmp_path / ".tpudeploy").rename(tmp_path / "elsewhere")
    assert at.run("plan", "gemma.yaml").code == 13
