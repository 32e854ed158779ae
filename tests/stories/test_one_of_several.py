"""A folder in which one file is no valid profile, or one deployment cannot be looked at: the others go on."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, CommandLine, Open
from workflow import HEAD, Both

QUICK = {"nodes": "simulated", "creates_per_minute": 1000}
# What may be wrong with a file in a folder, and what is said of it.
BROKEN = {
    "no YAML": ("version: 1\nname: [\n", "fleet/four.yaml:"),
    "a wrong key": (PROFILE.replace("name: gemma", "name: four") + "mdoel: {}\n", "mdoel"),
    "a rule": (PROFILE.replace("name: gemma", "name: four").replace("v6e-1", "v6e-3"), "v6e-3"),
    "a file that is not there": (
        PROFILE.replace("name: gemma", "name: four").replace("E2B-it\n", "E2B-it\n  config: gone.json\n"),
        "gone.json",
    ),
}
# Why the slices of one deployment cannot be looked at, and a part of what is said.
UNSEEN = {
    "iam-denied": "denied on resource",
    "unavailable": "unavailable",
    "location-denied": "is not found or access is unauthorized",
}


def fleet(person: CommandLine, *names: str) -> None:
    (person.folder / "fleet").mkdir(exist_ok=True)
    for name in names:
        text = PROFILE.replace("name: gemma", f"name: {name}")
        (person.folder / "fleet" / f"{name}.yaml").write_text(text, encoding="utf-8")


def broken(person: CommandLine, text: str, name: str = "four") -> None:
    (person.folder / "fleet" / f"{name}.yaml").write_text(text, encoding="utf-8")


def hide(person: CommandLine, fault: str, name: str = "four") -> None:
    """Nothing of a deployment can be looked at from now on."""
    person.emulator.script({"fault": fault, "method": "*.list"})
    person.emulator.script({"fault": fault, "method": "*.get", "name": f"{name}-*"})


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_no_valid_profile_stops_no_other(cli: Open, what: str) -> None:
    text, part_of_message = BROKEN[what]
    person = cli(**QUICK)
    fleet(person, "one", "two")
    broken(person, text)
    planned = person.run("plan", "fleet", "-detailed-exitcode")
    assert planned.code == 1, planned.all
    assert "Plan: 2 to add, 0 to change, 0 to destroy." in planned.out
    assert part_of_message in planned.err
    applied = person.run("apply", "fleet", "-auto-approve")
    assert applied.code == 1, applied.all
    assert "Deployments: 2 served, 1 failed." in applied.out
    assert part_of_message in applied.err
    assert {name.partition("-")[0] for name in person.slices} == {"one", "two"}
    again = person.run("apply", "fleet", "-auto-approve")
    assert again.code == 1, again.all
    assert "Deployments: 1 failed, 2 unchanged." in again.out
    status = person.run("status", "fleet", "--json")
    assert status.code == 1, status.all
    deployments = {d["name"]: d for d in json.loads(status.out)["deployments"]}
    assert len(deployments) == 3
    assert deployments["one"]["replicas"][0]["state"] == "serving"
    (unknown,) = (d for name, d in deployments.items() if "four" in name)
    assert (unknown["replicas"], unknown["error"]["exit_code"]) == ([], 1)
    assert person.run("drift", "fleet").code == 1
    destroyed = person.run("destroy", "fleet", "-auto-approve")
    assert destroyed.code == 1, destroyed.all
    assert "Deployments: 2 gone, 1 failed." in destroyed.out
    assert person.slices == {}


def test_a_plan_document_has_the_problems_of_a_file_that_is_no_valid_profile(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one")
    broken(person, BROKEN["a wrong key"][0])
    result = person.run("plan", "fleet", "-json")
    assert result.code == 1
    plan = json.loads(result.out)
    assert plan["errored"]
    assert [goal["name"] for goal in plan["goals"]] == ["one", "fleet/four.yaml"]
    assert "mdoel" in plan["diagnostics"][0]["message"]
    applied = person.run("apply", "fleet", "-auto-approve", "-json")
    assert applied.code == 1
    report = json.loads(applied.out.splitlines()[-1])
    assert {d["name"]: d["result"] for d in report["deployments"]} == {"one": "served", "fleet/four.yaml": "failed"}


@pytest.mark.parametrize("what", BROKEN)
def test_zones_shows_the_places_of_the_others(cli: Open, what: str) -> None:
    text, part_of_message = BROKEN[what]
    person = cli(**QUICK)
    fleet(person, "one")
    broken(person, text)
    zones = person.run("zones", "fleet")
    assert zones.code == 1, zones.all
    assert "us-east5-b" in zones.out
    assert part_of_message in zones.all


@pytest.mark.parametrize("what", ["no YAML", "a file that is not there"])
def test_with_a_target_the_files_of_others_only_cause_a_warning(cli: Open, what: str) -> None:
    text, part_of_message = BROKEN[what]
    person = cli(**QUICK)
    fleet(person, "one", "two")
    broken(person, text)
    applied = person.run("apply", "fleet", "-target", "one", "-auto-approve")
    assert applied.code == 0, applied.all
    assert part_of_message in applied.err
    assert {name.partition("-")[0] for name in person.slices} == {"one"}
    assert person.run("drift", "fleet", "-target", "one").code == 0
    assert person.run("destroy", "fleet", "-target", "one", "-auto-approve").code == 0
    assert person.slices == {}


def test_a_target_whose_file_is_not_valid_is_an_error(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one")
    broken(person, BROKEN["a file that is not there"][0])
    result = person.run("plan", "fleet", "-target", "four")
    assert (result.code, "gone.json" in result.err) == (1, True), result.all
    broken(person, BROKEN["no YAML"][0])
    unnamed = person.run("plan", "fleet", "-target", "four")
    assert unnamed.code == 1
    assert "There is no four in this plan." in unnamed.err
    assert "No valid profile is in fleet/four.yaml" in unnamed.err


def test_with_a_target_the_state_of_another_that_cannot_be_read_stops_nothing(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    (person.folder / ".tpudeploy" / "state" / "four.json").write_text("{", encoding="utf-8")
    assert person.run("plan", "fleet", "-target", "one[0]").code == 0
    assert person.run("plan", "fleet", "-target", "four[0]").code == 1
    both = person.run("destroy", "fleet", "-target", "one", "-target", "four", "-auto-approve")
    assert both.code == 1, both.all
    assert {name.partition("-")[0] for name in person.slices} == {"four"}


def test_where_no_file_is_a_valid_profile_nothing_is_asked(cli: Open) -> None:
    person = cli()
    fleet(person)
    broken(person, BROKEN["no YAML"][0])
    broken(person, BROKEN["a wrong key"][0], "five")
    result = person.run("apply", "fleet", "-auto-approve")
    assert result.code == 1
    assert "mdoel" in result.err
    assert "fleet/four.yaml:" in result.err
    assert not person.emulator.requests


def test_two_profiles_of_one_name_stop_no_other(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one")
    broken(person, PROFILE, "gemma")
    broken(person, PROFILE.replace("v6e-1", "v6e-4"), "larger")
    result = person.run("apply", "fleet", "-auto-approve")
    assert result.code == 1, result.all
    assert "Several profiles are called gemma." in result.err
    assert "Deployments: 1 failed, 1 served." in result.out or "Deployments: 1 served, 1 failed." in result.out
    assert {name.partition("-")[0] for name in person.slices} == {"one"}


def test_gc_of_a_folder_refuses_where_a_file_may_be_the_profile_of_what_it_would_remove(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    (person.folder / ".tpudeploy" / "state" / "four.json").unlink()
    broken(person, BROKEN["no YAML"][0])
    result = person.run("gc", "fleet", "-foreign", "-auto-approve")
    assert result.code == 1
    assert "fleet/four.yaml:" in result.err
    assert len(person.slices) == 2


def test_a_state_whose_profile_cannot_be_read_is_not_called_renamed(cli: Open) -> None:
    """Another deployment has what a new profile declares: the file that cannot be read may be about it."""
    person = cli(**QUICK)
    fleet(person, "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    fleet(person, "one")
    broken(person, BROKEN["no YAML"][0])
    assert "TPU3022" not in person.run("plan", "fleet").all
    (person.folder / "fleet" / "four.yaml").unlink()
    assert "TPU3022" in person.run("plan", "fleet").all


@pytest.mark.parametrize("fault", UNSEEN)
def test_status_shows_the_others_and_says_why_one_is_unknown(cli: Open, fault: str) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "two", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    hide(person, fault)
    for words in (["status", "fleet"], ["status"]):
        result = person.run(*words)
        assert result.code == 1, result.all
        assert "four  unknown" in result.out
        assert UNSEEN[fault] in result.out
        assert result.out.count("endpoint") == 2
        assert "one[0]" in result.out
    details = person.run("status", "fleet", "-details", "-timeline")
    assert details.code == 1, details.all
    assert "two[0]" in details.out


def test_status_says_that_a_state_cannot_be_read_and_shows_the_others(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    (person.folder / ".tpudeploy" / "state" / "four.json").write_text("{", encoding="utf-8")
    result = person.run("status", "fleet")
    assert result.code == 1
    assert "four  unknown" in result.out
    assert "one[0]  serving" in result.out


@pytest.mark.parametrize("fault", UNSEEN)
def test_drift_shows_what_changed_in_the_others(cli: Open, fault: str) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "two", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    slice_ = next(name for name in person.slices if name.startswith("one-"))
    person.emulator.preempt(slice_)
    person.clock.sleep(60)
    hide(person, fault)
    result = person.run("drift", "fleet")
    assert result.code == 1, result.all
    assert "one[0] has lost its slice" in result.out
    assert UNSEEN[fault] in result.err
    recorded = person.run("apply", "-refresh-only", "fleet", "-auto-approve")
    assert recorded.code == 1, recorded.all
    assert UNSEEN[fault] in recorded.err
    assert "one[0] has no slice" in person.run("drift", "fleet").out, "the loss is written down"


def test_where_nothing_else_changed_drift_does_not_say_that_all_is_as_applied(cli: Open) -> None:
    person = cli(**QUICK)
    fleet(person, "one", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    hide(person, "iam-denied")
    result = person.run("drift", "fleet")
    assert result.code == 1
    assert "No changes where tpudeploy could look." in result.out


@pytest.mark.parametrize("fault", UNSEEN)
def test_an_issue_about_what_cannot_be_looked_at_stays_as_it_is_and_the_others_are_told(
    pipeline: Both, fault: str
) -> None:
    person, here = pipeline
    fleet(person, "one", "two", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    here.on_schedule()
    for name in ("one", "four"):
        person.emulator.preempt(next(each for each in person.slices if each.startswith(f"{name}-")))
    person.clock.sleep(60)
    assert person.run("ci", "drift", "fleet").code == 0
    assert {issue["title"] for issue in here.api.issues} == {"tpudeploy: one was lost", "tpudeploy: four was lost"}
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    hide(person, fault)
    result = person.run("ci", "drift", "fleet")
    assert result.code == 1, result.all
    assert "four: unknown" in result.out
    assert UNSEEN[fault] in result.err
    assert "tpudeploy: four is unknown" in here.summary
    assert {issue["title"]: issue["state"] for issue in here.api.issues} == {
        "tpudeploy: one was lost": "closed",
        "tpudeploy: four was lost": "open",
    }


def test_a_pull_request_that_breaks_one_file_is_told_the_plan_of_the_others(pipeline: Both) -> None:
    person, here = pipeline
    fleet(person, "one", "four")
    assert person.run("apply", "fleet", "-auto-approve").code == 0
    fleet(person, "two")
    broken(person, BROKEN["no YAML"][0])
    planned = person.run("ci", "plan", "fleet")
    assert planned.code == 1, planned.all
    comment = here.comment()
    assert "1 to add, 0 to change, 0 to destroy" in comment
    assert "Merging leaves out fleet/four.yaml" in comment
    assert "has a state, but no profile here" not in comment, (
        "a file that cannot be read may be the profile of any state"
    )
    assert here.statuses(HEAD) == [("tpudeploy/plan", "failure")]
    here.on_push()
    applied = person.run("ci", "apply", "fleet")
    assert applied.code == 1, applied.all
    assert {name.partition("-")[0] for name in person.slices} == {"one", "two", "four"}
    drift = person.run("ci", "drift", "fleet")
    assert drift.code == 1, drift.all
    assert "fleet/four.yaml: unknown" in drift.out
