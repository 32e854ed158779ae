"""A pull request and its merge: what is told there, by whom it is believed, and what is applied."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open
from github_api import BOT, LONGEST, Trouble
from goldens import assert_golden
from other_process import holding
from workflow import HEAD, MERGED, PULL, Both

from tpudeploy.domain import errors
from tpudeploy.features.gitops import approval, markdown

HUGE = "".join(f"    variable_{n:04}: '{'x' * 60}'\n" for n in range(2000))


PLAN, APPLY = ("ci", "plan", "gemma.yaml"), ("ci", "apply", "gemma.yaml")


def _merged(both: Both) -> None:
    """Planned on a pull request, and merged."""
    at, here = both
    here.on_pull_request()
    planned = at.run(*PLAN)
    assert planned.code == 0, planned.all
    here.on_push()


def _deployed(both: Both, text: str = PROFILE) -> None:
    at, _ = both
    at.write(text)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


def test_a_pull_request_is_told_the_plan_in_one_comment_that_a_second_push_updates(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN).code == 0
    first = here.comment()
    assert "1 to add, 0 to change, 0 to destroy" in first
    at.write(PROFILE.replace("v6e-1", "v6e-4"))
    here.on_pull_request(head="d" * 40)
    assert at.run(*PLAN).code == 0
    second = here.comment()
    assert approval.loads(first) != approval.loads(second)
    assert "v6e-4" in second
    assert here.statuses(HEAD) == here.statuses("d" * 40) == [("tpudeploy/plan", "success")]


def test_a_pull_request_is_told_what_the_budgets_have_left(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline, f"{PROFILE}lifecycle: {{end: 10h}}\nbudget: {{month: 30}}\n")
    (at.folder / ".tpudeploy" / "budgets.yaml").write_text("projects: {emulated: {month: 100}}\n", encoding="utf-8")
    at.clock.sleep(3600)
    assert at.run(*PLAN).code == 0
    comment = here.comment()
    told = r"\$1\.\d\d spent, at most \$12\.\d\d more until the ends of what runs, "
    assert re.search(
        rf"`budget\.month` of `gemma`, in 2026-09 \(UTC\): {told}\*\*\$15\.\d\d left\*\* of \$30\.00", comment
    )
    assert re.search(rf"`budgets\.yaml projects\.emulated\.month`, in 2026-09 \(UTC\): {told}\*\*\$85", comment)


def test_a_pull_request_is_told_what_was_spent_without_a_budget_too(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline, f"{PROFILE}lifecycle: {{end: 10h}}\n")
    at.clock.sleep(3600)
    assert at.run(*PLAN).code == 0
    assert re.search(
        r"in 2026-09 \(UTC\): \$1\.\d\d spent, at most \$12\.\d\d more until the ends of what runs; no budget",
        here.comment(),
    )


def test_a_plan_in_a_pipeline_takes_no_lock_and_only_looks(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline)
    before = len(at.emulator.requests)
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop"):
        assert at.run(*PLAN).code == 0
    requests = {r.path.partition("?")[0] for r in at.emulator.requests[before:] if r.method != "GET"}
    assert all(path.endswith(":getGuestAttributes") for path in requests)  # a read, whatever its verb
    assert "no changes" in here.comment()


@pytest.mark.parametrize("what", ["plan", "drift"])
def test_whoever_may_only_read_the_bucket_can_plan_and_look_for_drift(pipeline: Both, what: str) -> None:
    at, _ = pipeline
    bucket = ("--backend", "gs://states/team")
    assert at.run("apply", "-auto-approve", "gemma.yaml", *bucket).code == 0
    before = len(at.emulator.requests)
    result = at.run("ci", what, "gemma.yaml", *bucket)
    assert result.code == 0, result.all
    requests = [r for r in at.emulator.requests[before:] if "/b/states" in r.path]
    assert requests
    assert {r.method for r in requests} == {"GET"}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("create", None),
        ("restart", ("16384", "8192")),
        ("replace", ("v6e-1", "v6e-4")),
        ("update", ("[spot]", "[spot]\n  labels: {team: search}")),
    ],
)
def test_the_comment_reads_well(pipeline: Both, name: str, change: tuple[str, str] | None) -> None:
    at, here = pipeline
    if change is not None:
        _deployed(pipeline)
        at.write(PROFILE.replace(*change))
    assert at.run(*PLAN).code == 0
    mark = approval.loads(here.comment())
    assert mark is not None
    # Each state has a lineage of its own, which is part of the marker and of the fingerprint.
    text = here.comment().replace(mark.whole, "FINGERPRINT").replace(mark.goals["gemma"].lineage or "NONE", "LINEAGE")
    assert_golden(f"comments/{name}.md", text + "\n", folder=at.folder)


def test_the_run_has_a_summary_outputs_and_files(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN, "-artifacts", "told", "-detailed-exitcode").code == 2
    assert "### tpudeploy plan · 1 to add" in here.summary
    plan = json.loads((at.folder / "told" / "plan.json").read_text("utf-8"))
    assert plan["format"] == "tpudeploy.plan/1"
    mark = approval.loads(here.comment())
    assert mark is not None
    assert here.outputs["fingerprint"] == mark.whole
    assert (here.outputs["changes"], here.outputs["approvable"]) == ("true", "true")
    assert Path(here.outputs["text-plan-path"]).read_text("utf-8") == here.summary


def test_two_machines_give_the_same_plan_the_same_fingerprint(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN).code == 0
    first = here.outputs["fingerprint"]
    (at.folder / "elsewhere").mkdir()
    at.write(f"# a line above\n{PROFILE}", "elsewhere/other-name.yaml")
    at.clock.sleep(86400)
    assert at.run("ci", "plan", "elsewhere/other-name.yaml").code == 0
    assert here.outputs["fingerprint"] == first
    at.write(PROFILE.replace("16384", "16383"))
    assert at.run(*PLAN).code == 0
    assert here.outputs["fingerprint"] != first


def test_a_fork_is_validated_and_nothing_more(pipeline: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    at, here = pipeline
    monkeypatch.delenv("GITHUB_TOKEN")
    here.on_pull_request(repository="stranger/models")
    result = at.run(*PLAN)
    assert result.code == 0, result.all
    assert "no plan is made" in result.out
    assert not at.emulator.requests
    assert not here.api.calls
    at.write(PROFILE.replace("v6e-1", "v6e-7"))
    assert at.run(*PLAN).code == 1


def test_a_strangers_profiles_never_run_with_our_credentials(pipeline: Both) -> None:
    at, here = pipeline
    here.on_pull_request(repository="stranger/models", event="pull_request_target")
    result = at.run(*PLAN)
    assert result.code == 1
    assert "a fork's profiles" in result.err
    assert not at.emulator.requests


def test_a_profile_that_is_wrong_is_annotated_and_takes_an_earlier_approval_back(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN).code == 0
    at.write(PROFILE.replace("v6e-1", "v6e-7"))
    result = at.run(*PLAN)
    assert result.code == 1
    assert "::error file=" in result.out
    assert "line=6,col=9" in result.out
    mark = approval.loads(here.comment())
    assert mark is not None
    assert not mark.is_approval
    assert 'There is no accelerator type "v6e-7"' in here.comment()
    assert here.statuses(HEAD)[-1] == ("tpudeploy/plan", "failure")
    at.write()
    here.on_push()
    assert at.run(*APPLY).code == 11


def test_a_cloud_that_does_not_answer_is_told_where_the_plan_would_be(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline)
    at.emulator.script({"fault": "api-off"})
    assert at.run(*PLAN).code == 1
    assert "failed" in here.comment()
    assert here.outputs["failure-reason"] == "TPU5003"


def test_what_was_merged_is_applied(pipeline: Both) -> None:
    at, here = pipeline
    _merged(pipeline)
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert list(at.slices.values()) == ["ACTIVE"]
    assert here.statuses(MERGED) == [("tpudeploy/apply", "success")]
    assert here.outputs["exit-code"] == "0"
    assert any("Done! Resources: 1 added" in body for body in here.api.by(BOT, PULL))
    again = at.run(*APPLY)
    assert again.code == 0, again.all
    assert len([b for b in here.api.by(BOT, PULL) if "tpudeploy apply" in b]) == 1


def test_a_plan_that_moved_since_is_shown_and_not_applied(pipeline: Both) -> None:
    at, here = pipeline
    _merged(pipeline)
    at.write(PROFILE.replace("16384", "8192"))
    stopped = at.run(*APPLY)
    assert stopped.code == 11
    assert "The plan for gemma is not the one that was approved by merging." in stopped.err
    assert not at.requested_zones()
    assert here.statuses(MERGED) == [("tpudeploy/apply", "failure")]
    assert "8192" in next(b for b in here.api.by(BOT, PULL) if "tpudeploy apply · stopped" in b)
    assert at.run(*APPLY).code == 11  # what it was told does not approve it
    accepted = at.run(*APPLY, "-accept", here.outputs["fingerprint"])
    assert accepted.code == 0, accepted.all


def test_a_state_that_somebody_holds_is_not_touched(pipeline: Both) -> None:
    at, here = pipeline
    _merged(pipeline)
    with holding(at.folder / ".tpudeploy", "gemma", who="alice@laptop"):
        began = at.clock.now()
        stopped = at.run(*APPLY, "-lock-timeout", "2m")
        assert at.clock.now() - began >= 120
    assert stopped.code == 10
    assert here.outputs["exit-code"] == "10"
    assert not at.requested_zones()
    assert at.run(*APPLY).code == 0


def test_a_fingerprint_that_is_accepted_is_of_this_very_plan(pipeline: Both) -> None:
    at, here = pipeline
    _merged(pipeline)
    answer = here.outputs["fingerprint"]
    at.write(PROFILE.replace("16384", "8192"))
    refused = at.run(*APPLY, "-accept", answer)
    assert refused.code == 11
    assert f"no longer {answer}" in refused.err
    assert not at.requested_zones()


def test_the_world_may_move_too(pipeline: Both) -> None:
    at, _ = pipeline
    _deployed(pipeline)
    at.write(PROFILE.replace("16384", "8192"))
    _merged(pipeline)
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(60)
    assert at.run(*APPLY).code == 11


def test_what_a_stranger_says_with_our_marker_is_never_ours(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN).code == 0
    forged = here.comment()
    here.api.comments.clear()
    theirs = here.api.says("stranger", PULL, forged)
    here.on_push()
    assert at.run(*APPLY).code == 11
    assert not at.requested_zones()
    here.on_pull_request()
    assert at.run(*PLAN).code == 0
    assert theirs["body"] == forged
    assert len(here.api.by(BOT, PULL)) == 2  # the plan, and what the apply came to


def test_a_comment_on_a_later_page_is_found(pipeline: Both) -> None:
    at, here = pipeline
    for n in range(250):
        here.api.says("somebody", PULL, f"a remark, the {n}th")
    _merged(pipeline)
    at.run(*PLAN)
    assert here.comment()
    assert at.run(*APPLY).code == 0


def test_a_plan_too_long_for_a_comment_is_cut_and_approves_nothing(pipeline: Both) -> None:
    at, here = pipeline
    at.write(PROFILE.replace("  max_model_len", f"  env:\n{HUGE}  max_model_len"))
    _merged(pipeline)
    comment = here.comment()
    assert len(comment) < LONGEST
    assert "This comment is truncated, so it approves nothing" in comment
    assert "Merging applies" not in comment  # it says one thing
    assert "Merging applies nothing: the comment cannot show the whole plan." in here.summary
    assert "Merging applies this plan" not in here.summary
    assert here.signatures() == [("failure", "Merging applies nothing: the comment cannot show the whole plan.")]
    assert "| `gemma[0]` | create |" in comment
    assert "variable\\_1999" not in comment
    assert "variable_1999" in here.summary
    stopped = at.run(*APPLY)
    assert stopped.code == 11
    assert "truncated, contains an error or is not signed" in stopped.err
    assert not at.requested_zones()


def test_a_plan_that_a_check_forbids_says_one_thing(pipeline: Both) -> None:
    at, here = pipeline
    at.write(PROFILE.replace("gemma-4-E2B-it", "gemma-4-31B-it"))
    assert at.run(*PLAN).code == 13
    assert "Merging applies nothing: a check forbids this plan." in here.comment()
    assert "Merging applies this plan" not in here.comment()
    assert here.outputs["approvable"] == "false"
    assert here.signatures() == [("failure", "Merging applies nothing: a check forbids this plan.")]


SIX = ("one", "two", "three", "four", "five", "six")
FORBIDDEN = PROFILE.replace("max_model_len: 16384", "max_model_len: 900000")


def _fleet(at: CommandLine, **texts: str) -> None:
    (at.folder / "fleet").mkdir(exist_ok=True)
    for name in SIX:
        at.write(texts.get(name, PROFILE).replace("name: gemma", f"name: {name}"), f"fleet/{name}.yaml")


def _stands(at: CommandLine) -> set[str]:
    return {name.partition("-")[0] for name in at.slices}


def test_of_six_in_a_pull_request_one_that_a_check_forbids_keeps_none_of_the_others_from_being_applied(
    pipeline: Both,
) -> None:
    at, here = pipeline
    _fleet(at, four=FORBIDDEN)
    assert at.run("ci", "plan", "fleet").code == 13
    assert "Merging leaves out four: see the errors above." in here.comment()
    assert here.statuses(HEAD) == [("tpudeploy/plan", "failure")]
    here.on_push()
    applied = at.run("ci", "apply", "fleet")
    assert applied.code == 13, applied.all
    assert _stands(at) == set(SIX) - {"four"}
    assert here.statuses(MERGED) == [("tpudeploy/apply", "failure")]
    # What the merge did not approve is not bought once the check allows it.
    _fleet(at)
    assert at.run("ci", "apply", "fleet").code == 11
    assert _stands(at) == set(SIX) - {"four"}


def test_of_six_that_a_merge_approved_one_that_changed_since_keeps_none_of_the_others_from_being_applied(
    pipeline: Both,
) -> None:
    at, here = pipeline
    _fleet(at)
    assert at.run("ci", "plan", "fleet").code == 0
    here.on_push()
    _fleet(at, four=PROFILE.replace("v6e-1", "v6e-4"))
    applied = at.run("ci", "apply", "fleet")
    assert applied.code == 11, applied.all
    assert "The plan for four is not the one that was approved by merging." in applied.err
    assert "Nothing of four was changed." in applied.err
    assert _stands(at) == set(SIX) - {"four"}
    accepted = applied.err.partition("-accept ")[2].split(".")[0]
    assert at.run("ci", "apply", "fleet", "-accept", accepted).code == 0
    assert _stands(at) == set(SIX)


def test_of_six_one_whose_zone_does_not_answer_keeps_none_of_the_others_from_being_applied(pipeline: Both) -> None:
    at, here = pipeline
    _fleet(at)
    assert at.run("apply", "-auto-approve", "fleet/four.yaml").code == 0
    assert at.run("ci", "plan", "fleet").code == 0
    here.on_push()
    at.emulator.script({"fault": "iam-denied", "method": "*.get", "name": "four-*"})
    at.emulator.script({"fault": "iam-denied", "method": "*.list"})
    applied = at.run("ci", "apply", "fleet")
    assert applied.code == 1, applied.all
    assert _stands(at) == set(SIX)
    assert "four" in applied.err


@pytest.mark.parametrize("lines", [1, 20_000])
def test_what_an_apply_came_to_speaks_of_no_approval_however_long_it_is(lines: int) -> None:
    """Its comment may be cut too, and approves nothing in any case."""
    error = errors.CloudError("Google said no.", hint="\n".join(["a line of what it said"] * lines))
    text = markdown.apply_result("1 failed", [error])
    assert len(text) < LONGEST
    assert ("Truncated, because" in text) == (lines > 1)
    assert "approve" not in text


def test_a_commit_that_no_pull_request_brought_is_not_applied(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN).code == 0
    here.on_push(merged=False)
    stopped = at.run(*APPLY)
    assert stopped.code == 11
    assert "Not exactly one merged pull request brought" in stopped.err


def test_a_run_that_was_left_out_is_made_up_for_by_the_next(pipeline: Both) -> None:
    """Of runs that wait for one another GitHub keeps the latest; that one applies what all of them were to."""
    at, here = pipeline
    _merged(pipeline)
    at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    here.api.comments[8] = []
    here.on_pull_request(number=8)
    assert at.run("ci", "plan", "other.yaml").code == 0
    here.api.history = ["0" * 40, MERGED, "e" * 40]
    here.on_push("e" * 40, number=8)
    applied = at.run("ci", "apply", "gemma.yaml", "other.yaml")
    assert applied.code == 0, applied.all
    assert len(at.slices) == 2


def test_what_no_merged_pull_request_showed_is_not_made_up_for(pipeline: Both) -> None:
    at, here = pipeline
    assert at.run(*PLAN).code == 0  # still open
    here.api.history = ["0" * 40, MERGED, "e" * 40]
    here.on_push("e" * 40, number=8)
    assert at.run(*APPLY).code == 11
    assert not at.requested_zones()


def test_a_hunt_that_takes_longer_than_the_credentials_goes_on_by_schedule(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "timings", "waiting": 5000.0})
    _merged(pipeline)
    began = at.clock.now()
    result = at.run(*APPLY)
    assert result.code == 12, result.all
    assert 2600 < at.clock.now() - began < 2800
    assert here.statuses(MERGED) == [("tpudeploy/apply", "pending")]
    (check,) = here.api.checks
    assert (check["conclusion"], check["name"], check["head_sha"]) == ("neutral", "tpudeploy/apply", MERGED)
    assert here.outputs["exit-code"] == "12"
    before = dict(at.slices)
    here.on_schedule()
    here.api.comments.clear()
    resumed = at.run(*APPLY, "-resume", "-timeout", "10m")
    assert resumed.code == 12, resumed.all
    assert dict(at.slices) == before
    result = at.run(*APPLY, "-resume")
    assert result.code == 0, result.all
    assert list(at.slices.values()) == ["ACTIVE"]
    assert "Nothing is in progress." in at.run(*APPLY, "-resume").out


def test_a_schedule_does_nothing_that_was_not_begun(pipeline: Both) -> None:
    at, here = pipeline
    here.on_schedule()
    assert at.run(*APPLY, "-resume").code == 0
    assert not at.requested_zones()


def test_a_slice_that_still_starts_is_no_failure_of_the_pipeline(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "timings", "boot": 7200.0})
    _merged(pipeline)
    assert at.run(*APPLY, "-timeout", "30m").code == 12
    assert here.statuses(MERGED) == [("tpudeploy/apply", "pending")]


def test_what_fails_for_good_fails_the_pipeline(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "quota-zero"})
    _merged(pipeline)
    assert at.run(*APPLY).code == 1
    assert here.statuses(MERGED) == [("tpudeploy/apply", "failure")]
    assert here.outputs["exit-code"] == "1"


def test_a_deleted_profile_destroys_nothing_and_is_told(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline)
    other = at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    (at.folder / "gemma.yaml").unlink()
    assert at.run("ci", "plan", other).code == 0
    assert "`gemma` has a state, but no profile here" in here.comment()
    here.on_push()
    assert at.run("ci", "apply", other).code == 0
    assert len(at.slices) == 2


def test_the_last_profile_too_may_be_deleted(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline)
    (at.folder / "gemma.yaml").unlink()
    result = at.run("ci", "plan")
    assert result.code == 0, result.all
    assert "No profile was given" in result.err
    assert "`gemma` has a state, but no profile here" in here.comment()


def test_options_may_stand_before_the_profiles(pipeline: Both) -> None:
    at, here = pipeline
    result = at.run("ci", "-label", "east", "plan", "-artifacts", "told", "gemma.yaml")
    assert result.code == 0, result.all
    assert "1 to add" in here.comment()


def test_what_changed_outside_is_told_beside_the_plan(pipeline: Both) -> None:
    at, here = pipeline
    _deployed(pipeline)
    (node,) = at.emulator._cloud.nodes.values()
    node.spec["labels"] = {**node.spec.get("labels", {}), "owner": "me"}
    at.clock.sleep(3600)
    assert at.run(*PLAN).code == 0
    assert "<code>gemma</code>: changed outside of tpudeploy" in here.comment()
    assert '! placement.labels.owner = null (applied) -> "me" (live)' in here.comment()


def test_a_long_value_is_shown_to_its_end(pipeline: Both) -> None:
    at, here = pipeline
    long = PROFILE.replace("  max_model_len", f"  env: {{PROMPT: '{'x' * 200}END'}}\n  max_model_len")
    _deployed(pipeline, long)
    at.write(long.replace("END", "end"))
    assert at.run(*PLAN).code == 0
    assert f"{'x' * 200}END" in here.comment()
    assert f"{'x' * 200}end" in here.comment()


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "20"}], ids=["plain", "told to wait"])
def test_a_forge_in_trouble_is_asked_again_and_told_once(pipeline: Both, headers: dict[str, str]) -> None:
    at, here = pipeline
    here.api.troubles += [
        Trouble(method="GET", path="comments", times=3, status=502, headers=headers),
        Trouble(method="POST", path="comments", is_done=True),
        Trouble(method="POST", path="statuses", status=429),
    ]
    began = at.clock.now()
    result = at.run(*PLAN)
    assert result.code == 0, result.all
    assert here.comment()
    assert here.statuses(HEAD) == [("tpudeploy/plan", "success")]
    assert at.clock.now() - began >= (60 if headers else 3)


def test_a_limit_of_requests_is_waited_for_until_it_is_lifted(pipeline: Both) -> None:
    at, here = pipeline
    reset = str(int(at.clock.now()) + 120)
    limit = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    here.api.troubles.append(Trouble(method="GET", path="comments", status=403, headers=limit))
    began = at.clock.now()
    assert at.run(*PLAN).code == 0
    assert at.clock.now() - began >= 119


def test_a_limit_without_a_time_is_waited_for_a_minute(pipeline: Both) -> None:
    at, here = pipeline
    words = "You have exceeded a secondary rate limit."
    here.api.troubles.append(Trouble(method="POST", path="comments", status=403, message=words))
    began = at.clock.now()
    assert at.run(*PLAN).code == 0
    assert at.clock.now() - began >= 60
    assert here.comment()


def test_a_forge_that_stays_silent_costs_the_comment_and_not_the_plan(pipeline: Both) -> None:
    at, here = pipeline
    here.api.troubles.append(Trouble(method="GET", path="comments", times=10_000))
    result = at.run(*PLAN)
    assert result.code == 1
    assert "GitHub is not ready (503)" in result.err
    assert "Plan: 1 to add" in result.out
    assert "1 to add" in here.summary


def test_a_forge_that_is_silent_after_an_apply_does_not_make_it_fail(pipeline: Both) -> None:
    at, here = pipeline
    _merged(pipeline)
    here.api.troubles.append(Trouble(method="POST", path="statuses", times=10_000, status=403))
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all
    assert "permissions" in applied.err
    assert list(at.slices.values()) == ["ACTIVE"]


def test_without_an_answer_about_the_approval_nothing_is_applied(pipeline: Both) -> None:
    at, here = pipeline
    _merged(pipeline)
    here.api.troubles.append(Trouble(method="GET", path="pulls", times=10_000))
    assert at.run(*APPLY).code == 1
    assert not at.requested_zones()


def test_whoever_writes_under_another_name_is_told_so(pipeline: Both) -> None:
    at, here = pipeline
    here.api.login = "my-app[bot]"
    result = at.run(*PLAN)
    assert result.code == 1
    assert "-author 'my-app[bot]'" in result.err
    assert at.run(*PLAN, "-author", "my-app[bot]").code == 0
    assert len(here.api.comments[PULL]) == 1


def test_a_bad_token_is_named(pipeline: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    at, _ = pipeline
    monkeypatch.setenv("GITHUB_TOKEN", "expired")
    result = at.run(*PLAN)
    assert result.code == 1
    assert "Is GITHUB_TOKEN set, and still valid?" in result.err


def test_a_next_page_somewhere_else_is_not_followed_with_our_token(pipeline: Both) -> None:
    at, here = pipeline
    here.api.url = "http://elsewhere.example"
    for n in range(150):
        here.api.says("somebody", PULL, str(n))
    result = at.run(*PLAN)
    assert result.code == 1
    assert "elsewhere.example" in result.err


def test_labels_keep_several_comments_apart(pipeline: Both) -> None:
    at, here = pipeline
    for label in ("east", "west", "east"):
        assert at.run(*PLAN, "-label", label).code == 0
    assert [approval.loads(b).label for b in here.api.by(BOT, PULL)] == ["east", "west"]  # type: ignore[union-attr]
    here.on_push()
    assert at.run(*APPLY, "-label", "north").code == 11
    assert at.run(*APPLY, "-label", "west").code == 0
    assert ("tpudeploy/plan/west", "success") in here.statuses(HEAD)


def test_outside_a_pipeline_the_same_commands_work_with_a_fingerprint(cli: Open) -> None:
    at = cli()
    at.write()
    assert at.run(*PLAN, "-artifacts", "told").code == 0
    stopped = at.run(*APPLY)
    assert stopped.code == 11
    _, _, fingerprint = stopped.err.partition("-accept ")
    assert at.run(*APPLY, "-accept", fingerprint.split(".")[0]).code == 0
