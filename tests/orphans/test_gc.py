"""gc: what nothing needs is found, shown with what it costs, and removed; what somebody needs never is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from other_process import holding
from overtaken import Overtaken

from tpudeploy import Profile, Workspace

SMALL_QUOTA = [{"class": "preemptible", "region": "*", "limit": 1}]


def deployed(at: CommandLine, text: str = PROFILE, name: str = "gemma.yaml") -> str:
    """A profile that serves; the one slice it has."""
    before = set(at.slices)
    assert at.run("apply", "-auto-approve", at.write(text, name)).code == 0
    (created,) = set(at.slices) - before
    return created


def state_file(at: CommandLine, name: str = "gemma") -> Path:
    return at.folder / ".tpudeploy" / "state" / f"{name}.json"


def rewritten(at: CommandLine, **changes: Any) -> None:
    """The state of gemma, as somebody else's tool or hand may leave it."""
    state_file(at).write_text(json.dumps({**at.state(), **changes}), encoding="utf-8")


def test_what_a_state_names_is_needed_and_nothing_is_removed(cli: Open) -> None:
    at = cli()
    deployed(at)
    result = at.run("gc")  # no question is asked
    assert result.code == 0, result.all
    assert (
        "Looked for queued resources and instances of Compute Engine in project emulated. Found 1 with tpudeploy's mark, 1 of them needed."
        in result.out
    )
    assert "Nothing to remove." in result.out
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize(
    ("text", "off", "kind"),
    [
        (PROFILE, "compute", "instances of Compute Engine"),
        (INSTANCE, "tpu", "queued resources"),
    ],
    ids=["queued-resource", "gce-instance"],
)
def test_both_apis_are_searched_and_one_that_nothing_here_uses_may_be_disabled(
    cli: Open, text: str, off: str, kind: str
) -> None:
    at = cli(project={"apis_off": [f"{off}.googleapis.com"]})
    name = deployed(at, text)
    result = at.run("gc")
    assert result.code == 0, result.all
    assert f"Did not look for {kind} in project emulated. The API is not enabled there." in result.out
    state_file(at).unlink()
    removed = at.run("gc", "-foreign", "-auto-approve")
    assert removed.code == 0, removed.all
    assert f"Deleted {name}" in removed.err
    assert at.slices == {}


def test_an_api_that_a_state_uses_must_be_searched(cli: Open) -> None:
    at = cli()
    deployed(at)
    at.emulator.script({"fault": "iam-denied", "api": "tpu", "method": "*"})
    result = at.run("gc")
    assert result.code == 1, result.all
    assert "Permission 'tpu" in result.err


@pytest.mark.instant("ages are told to the minute")
def test_a_lost_state_is_foreign_and_left_alone_until_a_person_says_otherwise(cli: Open) -> None:
    at = cli(quota=SMALL_QUOTA)
    name = deployed(at)
    at.clock.sleep(2 * 3600)
    state_file(at).unlink()
    result = at.run("gc")
    assert result.code == 0, result.all
    assert "Foreign: their deployment has no state here." in result.out
    assert "Kept, because they may belong to another project; -foreign removes them:" in result.out
    assert f"{name} us-east5-a v6e-1 spot ACTIVE 2h 2m old $1.40/h 1 chip" in result.words
    assert list(at.slices) == [name]

    removed = at.run("gc", "-foreign", "-auto-approve")
    assert removed.code == 0, removed.all
    assert "Plan: 1 to remove; saves $1.40/h at list price, gives 1 chip of quota back." in removed.out
    assert f"gemma[0]: Deleting {name} in us-east5-a (no state here tracks it)" in removed.err
    assert f"gemma[0]: Deleted {name}" in removed.err
    assert "Done! 1 removed." in removed.out
    assert at.slices == {}
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0  # the quota of one chip is free again


def test_without_a_yes_nothing_is_removed(cli: Open) -> None:
    at = cli()
    name = deployed(at)
    state_file(at).unlink()
    result = at.run("gc", "-foreign")
    assert result.code == 1
    assert "pass -auto-approve" in result.err
    assert at.slices == {name: "ACTIVE"}


def test_a_state_of_another_lineage_disowns_what_it_does_not_name(cli: Open) -> None:
    at = cli()
    name = deployed(at)
    rewritten(at, lineage="f" * 32, records=[])
    result = at.run("gc")
    assert result.code == 0, result.all
    assert "Foreign: their lineage differs from that of their deployment's state." in result.out
    assert at.slices == {name: "ACTIVE"}
    assert at.run("gc", "-foreign", "-auto-approve").code == 0
    assert at.slices == {}


def test_what_a_restored_backup_has_forgotten_is_left_over(cli: Open) -> None:
    at = cli()
    deployed(at)
    backup = state_file(at).read_text(encoding="utf-8")
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    (newer,) = at.slices
    state_file(at).write_text(backup, encoding="utf-8")
    result = at.run("gc", "-auto-approve")
    assert result.code == 0, result.all
    assert "Orphaned: their deployment's state does not list them. To be removed:" in result.out
    assert f"- {newer} us-east5-a v6e-4 spot ACTIVE" in result.words
    assert f"Deleting {newer} in us-east5-a (its state does not track it)" in result.err
    assert at.slices == {}


def test_the_same_name_in_another_zone_is_another_thing(cli: Open) -> None:
    """A restored state counts its attempts anew."""
    at = cli()
    name = deployed(at)
    backup = at.state()
    (record,) = backup["records"]
    elsewhere = {**record, "attempts": [{**record["attempts"][0], "zone": "us-east5-b"}]}
    rewritten(at, records=[elsewhere])
    result = at.run("gc", "-auto-approve")
    assert result.code == 0, result.all
    assert f"- {name} us-east5-a" in result.words
    assert at.slices == {}


def test_a_husk_costs_nothing_and_gives_its_quota_back(cli: Open) -> None:
    at = cli(quota=SMALL_QUOTA)
    name = deployed(at)
    at.emulator.preempt(name)
    at.clock.sleep(240)
    state_file(at).unlink()
    removed = at.run("gc", "-foreign", "-auto-approve")
    assert removed.code == 0, removed.all
    assert f"- {name} us-east5-a v6e-1 spot SUSPENDED" in removed.words
    assert "no cost 1 chip" in removed.words
    assert "Plan: 1 to remove; gives 1 chip of quota back." in removed.out
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


def test_a_removal_deletes_a_node_that_outlived_its_queued_resource(cli: Open) -> None:
    at = cli(trouble=[{"fault": "orphan", "times": 1}], quota=SMALL_QUOTA)
    name = deployed(at)
    destroyed = at.run("destroy", "-auto-approve", "gemma.yaml")
    assert destroyed.code == 0, destroyed.all
    assert destroyed.words.count(f"Deleting {name}") == 2, destroyed.all
    assert at.emulator.billed() == ()


def test_a_node_that_outlived_its_queued_resource_is_found_and_removed(cli: Open) -> None:
    at = cli(trouble=[{"fault": "orphan", "times": 1}], quota=SMALL_QUOTA)
    name = deployed(at)
    rewritten(at, records=[])
    assert at.run("gc", "-auto-approve").code == 0
    assert at.slices == {}
    assert at.emulator.billed() == (name,)
    result = at.run("gc", "-auto-approve")
    assert result.code == 0, result.all
    assert f"- {name} us-east5-a v6e-1 spot node READY" in result.words
    assert "saves $1.40/h" in result.out
    assert at.emulator.billed() == ()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


def test_a_silent_zone_is_named_and_the_command_has_not_done_all_it_was_asked(cli: Open) -> None:
    at = cli(trouble=[{"fault": "stockout", "zone": "us-east5-a", "attempt": 2}])
    near = deployed(at)
    deployed(at, PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    for name in ("gemma", "other"):
        state_file(at, name).unlink()
    at.emulator.script({"fault": "unreachable", "zones": "us-east5-b", "times": 2})
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 1
    assert "No answer from emulated/us-east5-b: the resources there are unknown." in result.err
    assert near not in at.slices
    assert list(at.slices.values()) == ["ACTIVE"]
    assert at.run("gc", "-foreign", "-auto-approve").code == 0
    assert at.slices == {}


def test_a_silent_zone_alone_is_not_a_clean_one(cli: Open) -> None:
    at = cli(trouble=[{"fault": "unreachable", "zones": "us-east5-b"}])
    result = at.run("gc", "-json")
    assert result.code == 1
    assert json.loads(result.out.splitlines()[-1])["unreachable"] == ["emulated/us-east5-b"]
    assert "the resources there are unknown" in result.err


def test_a_project_that_cannot_be_listed_at_once_is_looked_through_zone_by_zone(cli: Open) -> None:
    at = cli(trouble=[{"fault": "zone-unsupported", "zone": "-", "method": "*.list"}])
    deployed(at)
    state_file(at).unlink()
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 0, result.all
    assert "in the 20 zones in the catalog, because listing all zones at once was refused" in result.out
    assert at.slices == {}


@pytest.mark.polls_every_second("the deletions that are sent are counted")
def test_a_refused_delete_is_asked_again_until_it_takes(cli: Open) -> None:
    at = cli(timings={"provisioning": 700.0})
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "2m", profile).code == 12
    (name,) = at.slices
    assert at.slices == {name: "PROVISIONING"}
    state_file(at).unlink()
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 0, result.all
    assert result.err.count("Deleting gemma-") == 1
    deletes = [r for r in at.emulator.requests if r.method == "DELETE"]
    assert len(deletes) > 10
    assert "Still waiting: for " in result.err
    assert at.slices == {}


def test_what_will_not_go_ends_with_its_name_and_the_next_run_takes_it_up(cli: Open) -> None:
    at = cli(trouble=[{"fault": "provisioning-loop", "for": 4000.0}])
    profile = at.write()
    assert at.run("apply", "-auto-approve", "-timeout", "2m", profile).code == 12
    (name,) = at.slices
    state_file(at).unlink()
    began = at.clock.now()
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 1
    assert f"Not deleted after 30 minutes: emulated/us-east5-a/{name} (PROVISIONING)." in result.err
    assert "Done! 0 removed." in result.out
    assert at.clock.now() - began < 2000
    at.clock.sleep(3600)
    assert at.run("gc", "-foreign", "-auto-approve").code == 0
    assert at.slices == {}


def test_a_run_that_holds_the_lock_is_not_raced_and_the_others_are_cleared(cli: Open) -> None:
    at = cli()
    gemma = deployed(at)
    deployed(at, PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    for name in ("gemma", "other"):
        state_file(at, name).unlink()
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop"):
        result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 10
    assert "The state of gemma is locked by alice@laptop" in result.err
    assert "Done! 1 removed." in result.out
    assert at.slices == {gemma: "ACTIVE"}


def test_what_has_come_to_be_needed_while_the_question_stood_stays(cli: Open) -> None:
    at = cli()
    name = deployed(at)
    aside = state_file(at).rename(at.folder / "kept.json")
    heard: list[str] = []
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        orphans = workspace.gc(foreign=True)
        assert [stray.resource.ref.name for stray in orphans.going] == [name]
        aside.rename(state_file(at))
        report = workspace.collect(orphans, on_event=lambda event: heard.append(repr(event)))
    assert report.error is None
    assert report.outcomes == ()
    assert f"{name} is needed by now, and is kept." in " ".join(heard)
    assert at.slices == {name: "ACTIVE"}


def test_a_request_that_is_made_while_we_look_is_needed(cli: Open) -> None:
    at = cli()
    at.write()
    with Overtaken(at.folder, clock=at.clock, project="emulated") as workspace:
        workspace.adapters.at = at
        orphans = workspace.gc(foreign=True)
    assert (orphans.needed, orphans.strays) == (1, ())


def test_leftovers_become_foreign_with_another_state_and_stay(cli: Open) -> None:
    at = cli()
    name = deployed(at)
    rewritten(at, records=[])
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        orphans = workspace.gc()
        assert [stray.resource.ref.name for stray in orphans.going] == [name]
        rewritten(at, lineage="f" * 32)
        assert workspace.collect(orphans).outcomes == ()
    assert at.slices == {name: "ACTIVE"}


def test_profiles_narrow_it_to_their_deployments(cli: Open) -> None:
    at = cli()
    deployed(at)
    other = deployed(at, PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    for name in ("gemma", "other"):
        state_file(at, name).unlink()
    result = at.run("gc", "gemma.yaml", "-foreign", "-auto-approve")
    assert result.code == 0, result.all
    assert "Found 1 with tpudeploy's mark" in result.out
    assert at.slices == {other: "ACTIVE"}


def test_every_project_that_a_state_names_is_looked_through(cli: Open) -> None:
    at = cli()
    deployed(at)
    elsewhere = PROFILE.replace("name: gemma", "name: other") + "  project: another\n"
    other = deployed(at, elsewhere, "other.yaml")
    tree = at.state("other")
    (record,) = tree["records"]
    forgetful = {**record, "attempts": [{**record["attempts"][0], "name": "other-00000000-0-9"}]}
    state_file(at, "other").write_text(json.dumps({**tree, "records": [forgetful]}), encoding="utf-8")
    result = at.run("gc", "-auto-approve")
    assert result.code == 0, result.all
    assert "in projects another, emulated." in result.out
    assert f"- {other} another us-east5-a" in result.words
    assert other not in at.slices
    assert len(at.slices) == 1


def test_a_name_alike_is_never_removed(cli: Open) -> None:
    """Somebody else's training, by chance named as we name things."""
    at = cli()
    deployed(at)
    (slice_,) = at.emulator._cloud.slices.values()
    node = slice_.body["tpu"]["nodeSpec"][0]["node"]
    del node["labels"]
    del node["metadata"]
    state_file(at).unlink()
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 0, result.all
    assert "only their names look like ours" in result.out
    assert "Nothing to remove." in result.out
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize("content", ["{", '{"format": "tpudeploy.state/9"}'])
def test_a_state_that_cannot_be_read_may_need_anything(cli: Open, content: str) -> None:
    at = cli()
    name = deployed(at)
    state_file(at).write_text(content, encoding="utf-8")
    result = at.run("gc", "-foreign", "-auto-approve")
    assert result.code == 1
    assert str(state_file(at)) in result.err
    assert at.slices == {name: "ACTIVE"}


def test_a_colleague_in_another_folder_keeps_what_is_hers(cli: Open, tmp_path_factory: pytest.TempPathFactory) -> None:
    at = cli()
    mine = deployed(at)
    hers = replace(at, folder=tmp_path_factory.mktemp("hers"))
    other = deployed(hers, PROFILE.replace("name: gemma", "name: other"))
    result = at.run("gc", "-auto-approve")
    assert result.code == 0, result.all
    assert f"{other} us-east5-a" in result.words
    assert set(at.slices) == {mine, other}


def test_json_is_one_document_of_what_was_found_and_the_report(cli: Open) -> None:
    at = cli()
    name = deployed(at)
    state_file(at).unlink()
    result = at.run("gc", "-foreign", "-auto-approve", "-json")
    assert result.code == 0, result.all
    tree = json.loads(result.out)
    report = tree["report"]
    assert (tree["format"], tree["projects"], tree["unreachable"]) == ("tpudeploy.gc/1", ["emulated"], [])
    (stray,) = tree["strays"]
    assert stray["name"] == name
    assert stray["claim"] == "no state"
    assert (stray["goes"], stray["state"], stray["chips"]) == (True, "ACTIVE", 1)
    assert stray["usd_per_hour"] == pytest.approx(1.4033)
    assert "metadata" not in str(tree)
    assert report["format"] == "tpudeploy.report/1"
    assert report["outcomes"] == [
        {"address": f"emulated/us-east5-a/{name}", "action": "destroy", "error": None, "underway": False}
    ]


@pytest.mark.parametrize("trouble", [{"fault": "iam-denied"}, {"fault": "unavailable"}], ids=lambda t: str(t["fault"]))
def test_a_project_that_cannot_be_looked_through_is_an_error(cli: Open, trouble: Mapping[str, Any]) -> None:
    at = cli()
    name = deployed(at)
    at.emulator.script({**trouble, "method": "*.list"})
    result = at.run("gc", "-auto-approve")
    assert result.code == 1
    assert "Could not list the nodes of projects/emulated/locations/-" in result.err
    assert "Nothing to remove" not in result.all
    assert at.slices == {name: "ACTIVE"}


def test_without_a_project_there_is_nowhere_to_look(cli: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    at = cli()
    login = tmp_path / "login.json"
    login.write_text(
        json.dumps({"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}), "utf-8"
    )
    monkeypatch.delenv("TPU_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(login))
    monkeypatch.setenv("PATH", str(tmp_path))  # no gcloud to ask either
    result = at.run("gc")
    assert result.code == 1
    assert "No Google Cloud project is set." in result.err


def test_a_copied_folder_needs_what_the_first_one_needs(cli: Open, tmp_path: Path) -> None:
    at = cli()
    name = deployed(at)
    shutil.copytree(at.folder / ".tpudeploy", tmp_path / "copy" / ".tpudeploy")
    assert replace(at, folder=tmp_path / "copy").run("gc", "-foreign", "-auto-approve").code == 0
    assert at.slices == {name: "ACTIVE"}


def test_the_library_gives_what_the_command_prints(cli: Open) -> None:
    at = cli()
    deployed(at)
    state_file(at).unlink()
    with Workspace.open(at.folder, clock=at.clock) as workspace:
        orphans = workspace.gc([Profile.load(at.folder / "gemma.yaml")], foreign=True)
    printed = json.loads(at.run("gc", "gemma.yaml", "-foreign", "-json").out)
    returned = json.loads(json.dumps(orphans.to_dict()))
    for stray, earlier in zip(printed["strays"], returned["strays"], strict=True):
        assert stray.pop("age") >= earlier.pop("age")  # a slow neighbour may have taken 15 s in between
    assert {key: printed[key] for key in returned} == returned
