"""Drift on a schedule: one issue a deployment, which says what is wrong, and is closed once nothing is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open
from github_api import GitHubApi, Trouble
from workflow import Both, Pipeline

DRIFT = ("ci", "drift", "gemma.yaml")


def _deployed(both: Both) -> tuple[CommandLine, list[dict[str, Any]]]:
    at, here = both
    here.on_schedule()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    return at, here.api.issues


def _preempt(at: CommandLine) -> None:
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(60)


def _stop_the_server(at: CommandLine) -> None:
    (node,) = at.emulator._cloud.nodes.values()
    node.hosts[0].stop()


def _start_another(at: CommandLine) -> None:
    """Somebody starts the container anew by hand, with another length."""
    (node,) = at.emulator._cloud.nodes.values()
    host: Any = node.hosts[0]
    host._behaviour = replace(host._behaviour, instead={"max-model-len": "4096"})


def _meddle(at: CommandLine) -> None:
    (node,) = at.emulator._cloud.nodes.values()
    node.spec["labels"] = {**node.spec.get("labels", {}), "owner": "me"}
    at.clock.sleep(3600)


def _relabel(at: CommandLine) -> None:
    at.write(PROFILE + "  labels: {team: search}\n")


def test_without_a_profile_it_says_that_nothing_was_compared(cli: Open) -> None:
    at = cli()
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    result = at.run("ci", "drift")
    assert result.code == 1
    assert "No profile was given, so nothing was compared" in result.err
    assert "matches" not in result.all
    assert "planned" not in result.all


def test_where_all_is_well_nothing_is_said(pipeline: Both) -> None:
    at, issues = _deployed(pipeline)
    looked = at.run(*DRIFT, "-detailed-exitcode")
    assert looked.code == 0, looked.all
    assert "Everything matches the profiles." in looked.out
    assert not issues


def test_what_was_never_deployed_has_not_drifted_and_matches_nothing(pipeline: Both) -> None:
    at, here = pipeline
    looked = at.run(*DRIFT, "-detailed-exitcode")
    assert looked.code == 0
    assert "gemma was never applied" in looked.out
    assert "verything matches" not in looked.out
    assert not here.api.issues


@pytest.mark.parametrize(
    ("deed", "kind", "title", "words"),
    [
        (_preempt, "lost", "tpudeploy: gemma was lost", "lost: `gemma[0]`"),
        (_stop_the_server, "unhealthy", "tpudeploy: gemma does not serve", "unhealthy: `gemma[0]` on `gemma-"),
        (
            _start_another,
            "not in effect",
            "tpudeploy: gemma does not run with its declared settings",
            "not in effect: `max_model_len` of `gemma[0]`",
        ),
        (_relabel, "drift", "tpudeploy: gemma differs from its profile", "+ placement.labels.team"),
        (_meddle, "drift", "tpudeploy: gemma differs from its profile", '= null (applied) -> "me" (live)'),
    ],
    ids=["lost", "unhealthy", "not in effect", "drift", "meddled with"],
)
def test_each_way_to_be_wrong_has_its_issue(pipeline: Both, deed: Any, kind: str, title: str, words: str) -> None:
    at, issues = _deployed(pipeline)
    deed(at)
    before = dict(at.slices)
    looked = at.run(*DRIFT, "-detailed-exitcode")
    assert looked.code == 2, looked.all
    assert f"gemma: {kind}" in looked.out
    (issue,) = issues
    assert (issue["title"], issue["labels"]) == (title, ["tpudeploy-drift"])
    assert words in issue["body"]
    assert f"**{kind}**" in issue["body"]
    assert dict(at.slices) == before


def test_the_issue_of_a_slice_that_appeared_late_names_it_and_what_deletes_it(
    cli: Open, forge: GitHubApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    late = {"fault": "hidden-after-operation", "seconds": 7200, "times": 1}
    at = cli(nodes="simulated", trouble=[late])
    at.write(PROFILE.replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a"))
    _deployed((at, Pipeline(forge, monkeypatch, tmp_path / "runner")))
    at.clock.sleep(9000)
    untracked = next(name for name in at.slices if name.endswith("-0-0"))
    looked = at.run(*DRIFT, "-detailed-exitcode")
    assert looked.code == 2, looked.all
    (issue,) = forge.issues
    assert f"- untracked: `{untracked}` (`us-east5-a`) appeared late; `tpudeploy gc` deletes it" in issue["body"]
    assert "no state tracks" in issue["body"]
    assert "applies the profile" not in issue["body"]
    assert "was changed outside" not in issue["body"]


def test_what_the_profile_ignores_is_no_drift(pipeline: Both) -> None:
    at, here = pipeline
    at.write(PROFILE + "lifecycle: {ignore_changes: [placement.labels]}\n")
    _deployed(pipeline)
    _meddle(at)
    assert at.run(*DRIFT, "-detailed-exitcode").code == 0
    assert not here.api.issues


def test_one_issue_is_kept_up_to_date_and_closed_in_the_end(pipeline: Both) -> None:
    at, issues = _deployed(pipeline)
    _relabel(at)
    assert at.run(*DRIFT).code == 0
    _preempt(at)
    assert at.run(*DRIFT).code == 0
    (issue,) = issues
    assert issue["title"] == "tpudeploy: gemma was lost"
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.run(*DRIFT).code == 0
    assert issue["state"] == "closed"
    (_, here) = pipeline
    (output,) = here.api.comments[issue["number"]]
    assert "matches its profile again" in output["body"]
    _preempt(at)
    assert at.run(*DRIFT).code == 0
    assert [each["state"] for each in issues] == ["closed", "open"]


def test_an_issue_by_a_stranger_with_our_marker_is_left_alone(pipeline: Both) -> None:
    at, issues = _deployed(pipeline)
    _preempt(at)
    assert at.run(*DRIFT).code == 0
    issues[0]["user"] = {"login": "stranger"}
    before = dict(issues[0])
    assert at.run(*DRIFT).code == 0
    assert issues[0] == before
    assert len(issues) == 2


def test_a_pull_request_with_the_label_is_no_issue(pipeline: Both) -> None:
    at, issues = _deployed(pipeline)
    _preempt(at)
    assert at.run(*DRIFT).code == 0
    issues[0]["pull_request"] = {"url": "…"}
    before = dict(issues[0])
    assert at.run(*DRIFT).code == 0
    assert issues[0] == before


def test_an_issue_about_another_deployment_stays_open(pipeline: Both) -> None:
    at, issues = _deployed(pipeline)
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("apply", "-auto-approve", "other.yaml").code == 0
    for name in list(at.slices):
        at.emulator.preempt(name)
    at.clock.sleep(60)
    assert at.run(*DRIFT, "other.yaml").code == 0
    assert at.run("apply", "-auto-approve", "other.yaml").code == 0
    assert at.run("ci", "drift", "other.yaml").code == 0
    assert {issue["title"].split()[1]: issue["state"] for issue in issues} == {"gemma": "open", "other": "closed"}


def test_what_is_still_under_way_is_no_drift(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "wait-for-ever"})
    assert at.run("apply", "-auto-approve", "gemma.yaml", "-timeout", "10m").code == 12
    assert at.run(*DRIFT, "-detailed-exitcode").code == 0
    assert not here.api.issues


def test_a_boot_that_failed_is_unhealthy_though_its_run_is_not_over(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "boot", "crash": "program-allocation"})
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 1
    assert at.run(*DRIFT, "-detailed-exitcode").code == 2
    (issue,) = here.api.issues
    assert issue["title"] == "tpudeploy: gemma does not serve"
    assert "RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure" in issue["body"]


def test_a_lost_reply_opens_no_second_issue(pipeline: Both) -> None:
    at, issues = _deployed(pipeline)
    _preempt(at)
    _, here = pipeline
    here.api.troubles.append(Trouble(method="POST", path="/issues$", is_done=True))
    assert at.run(*DRIFT).code == 0
    assert len(issues) == 1
