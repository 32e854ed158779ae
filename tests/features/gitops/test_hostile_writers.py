"""People who may write to a repository, its other workflows, and authors of forks: none of them can approve a plan.

A writer edits comments, pushes to branches and retargets pull requests. Another workflow has the token and the name of
the bot that writes our comments. What they lack is the key that only jobs of protected environments are given.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open
from github_api import BOT, FORK_TOKEN, MAIN
from workflow import APPROVAL_KEY, HEAD, MERGED, PULL, Both, GitLab

PLAN, APPLY = ("ci", "plan", "gemma.yaml"), ("ci", "apply", "gemma.yaml")
DEARER = PROFILE.replace("v6e-1", "v6e-4")
LATER = "d" * 40
OTHER = 9


def _planned(pipeline: Both, base: str = MAIN) -> int:
    """A plan on the pull request; the id of its comment."""
    at, here = pipeline
    here.on_pull_request(base=base)
    planned = at.run(*PLAN)
    assert planned.code == 0, planned.all
    (comment,) = (c for c in here.api.comments[PULL] if c["body"] == here.comment())
    return int(comment["id"])


def _refused(at: CommandLine, *words: str, before: int = 0) -> None:
    stopped = at.run(*APPLY)
    assert stopped.code == 11, stopped.all
    for word in words:
        assert word in stopped.err
    assert len(at.requested_zones()) == before


def _planned_by_another_workflow(pipeline: Both, profile: str, number: int = OTHER) -> str:
    """The body of a comment with a whole plan that nobody has seen, and that is signed with a key of theirs."""
    at, here = pipeline
    at.write(profile)
    here.as_another_workflow("mallory's own key " * 3)
    here.on_pull_request(number=number)
    planned = at.run(*PLAN)
    assert planned.code == 0, planned.all
    here.as_ourselves()
    return str(here.api.comments[number][-1]["body"])


def test_a_plan_that_nobody_touched_is_applied(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    assert [state for state, _ in here.signatures()] == ["success"]
    here.on_push()
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all


def test_a_comment_whose_text_a_writer_made_harmless_approves_nothing(pipeline: Both) -> None:
    at, here = pipeline
    comment = _planned(pipeline)
    assert here.api.edits("mallory", comment, here.comment().replace("1 to add", "0 to add")) == 200
    assert here.comment()  # by the same author still
    here.on_push()
    _refused(at, "is not the one that was signed", "a person edited it")


def test_a_comment_that_a_writer_edited_and_put_back_approves_nothing(pipeline: Both) -> None:
    at, here = pipeline
    comment = _planned(pipeline)
    genuine = here.comment()
    here.api.edits("mallory", comment, genuine.replace("1 to add", "0 to add"))
    here.api.edits("mallory", comment, genuine)
    assert here.comment() == genuine
    here.on_push()
    _refused(at, "is not the one that was signed")


def test_an_edit_while_the_comment_is_written_is_written_over_before_it_is_signed(pipeline: Both) -> None:
    at, here = pipeline

    def edit(method: str, path: str) -> None:
        if method == "POST" and path.endswith("/comments"):
            here.api.edits("mallory", here.api.comments[PULL][0]["id"], "nothing to see here")

    here.api.on_call = edit
    _planned(pipeline)
    assert "1 to add" in here.comment()
    here.on_push()
    assert at.run(*APPLY).code == 0


def test_a_writer_cannot_put_another_plan_in_the_place_of_the_one_that_was_shown(pipeline: Both) -> None:
    at, here = pipeline
    comment = _planned(pipeline)
    forged = _planned_by_another_workflow(pipeline, DEARER)
    assert here.api.edits("mallory", comment, forged) == 200
    here.on_push()
    _refused(at, "is not the one that was signed")


def test_commits_that_were_pushed_after_the_plan_are_not_what_was_planned(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.api.opens(PULL, LATER)  # its run of `ci plan` was cancelled
    here.on_push()
    _refused(at, f"was made for commit {HEAD[:12]}, but commit {LATER[:12]} was merged")


def test_a_pull_request_that_was_retargeted_needs_another_plan(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline, base="staging")
    assert here.api.acts("mallory", "PATCH", f"pulls/{PULL}", {"base": "main"})[0] == 200
    here.on_push()
    _refused(at, "was made for a merge into staging, but it was merged into main")


def test_a_merge_into_another_branch_approves_nothing_here(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline, base="staging")
    here.on_push()  # the very commit that was merged into staging is pushed to main
    _refused(at, "#7 into staging")


def test_a_run_on_a_writers_own_branch_is_not_the_merge(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.on_push(branch="mallory/try")
    _refused(at, "This run is for mallory/try")


def test_a_tag_is_no_branch(pipeline: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.on_push()
    monkeypatch.setenv("GITHUB_REF", "refs/tags/main")
    _refused(at, "This run is for no branch")


def test_the_test_merge_of_an_open_pull_request_is_no_merge(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.on_push(here.api.pulls[PULL]["merge_commit_sha"], merged=False)
    _refused(at, "Not exactly one merged pull request brought")


def test_an_approval_that_is_copied_to_another_pull_request_is_none_there(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    ((_, signature),) = here.signatures()
    here.api.opens(OTHER, HEAD)  # the same head commit: its statuses are the same too
    here.api.says(BOT, OTHER, here.comment())
    assert signature
    here.on_push(number=OTHER)
    here.api.pulls.pop(PULL)
    _refused(at, "is not the one that was signed", "another workflow wrote it")


def test_another_workflow_writes_our_comment_and_our_statuses_and_approves_nothing(pipeline: Both) -> None:
    at, here = pipeline
    _planned_by_another_workflow(pipeline, DEARER, PULL)
    assert [state for state, _ in here.signatures()] == ["success"]
    check = {"name": "tpudeploy/approval", "head_sha": HEAD, "conclusion": "success"}
    assert here.api.acts(BOT, "POST", "check-runs", check)[0] == 201
    here.on_push()
    _refused(at, "is not the one that was signed", "another workflow wrote it")


def test_another_workflow_that_runs_our_own_command_has_no_key_to_sign_with(pipeline: Both) -> None:
    at, here = pipeline
    here.as_another_workflow()
    here.on_pull_request()
    planned = at.run(*PLAN)
    assert planned.code == 0, planned.all
    assert "Merging applies nothing: this pipeline has no `TPUDEPLOY_APPROVAL_KEY`" in here.comment()
    assert "Merging applies this plan" not in here.comment()
    assert here.outputs["approvable"] == "false"
    assert not here.signatures()
    here.as_ourselves()
    here.on_push()
    _refused(at, "it approves nothing")


def test_another_workflow_that_posts_our_comment_again_approves_nothing(pipeline: Both) -> None:
    """Meanwhile another text stood in its place."""
    at, here = pipeline
    comment = _planned(pipeline)
    genuine = here.comment()
    assert here.api.acts(BOT, "DELETE", f"issues/comments/{comment}")[0] == 204
    here.api.says(BOT, PULL, genuine)
    here.on_push()
    _refused(at, "another workflow wrote it")


def test_an_apply_without_the_key_believes_nothing(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.as_another_workflow()
    here.on_push()
    _refused(at, "No approval can be verified, because TPUDEPLOY_APPROVAL_KEY is not set", "-accept")


def test_a_key_that_can_be_guessed_is_refused(pipeline: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    at, _ = pipeline
    monkeypatch.setenv("TPUDEPLOY_APPROVAL_KEY", "secret")
    refused = at.run(*PLAN)
    assert refused.code == 1
    assert "fewer than 32 characters" in refused.err
    assert "openssl rand -hex 32" in refused.err


@pytest.mark.parametrize("where", ["serving", "placement"])
def test_no_profile_reads_the_key(pipeline: Both, where: str) -> None:
    at, here = pipeline
    line = "  env: {STOLEN: '${env:TPUDEPLOY_APPROVAL_KEY}'}\n"
    line = line if where == "serving" else "  labels: {stolen: '${env:TPUDEPLOY_APPROVAL_KEY}'}\n"
    at.write(PROFILE.replace(f"{where}:\n", f"{where}:\n{line}"))
    result = at.run(*PLAN)
    assert result.code == 1
    assert "TPUDEPLOY_APPROVAL_KEY" in result.all
    assert APPROVAL_KEY not in result.all + here.summary + str(here.api.comments) + str(here.api.statuses)


def test_a_fork_is_shown_nothing_and_its_merge_is_not_applied(pipeline: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    at, here = pipeline
    body = _planned_by_another_workflow(pipeline, DEARER)
    here.as_another_workflow()  # a fork is given no secret, and a token that only reads
    monkeypatch.setenv("GITHUB_TOKEN", FORK_TOKEN)
    here.on_pull_request(repository="stranger/models")
    assert at.run(*PLAN).code == 0
    assert not here.api.comments.get(PULL)
    here.api.says("stranger", PULL, body)
    status = {"state": "success", "context": "tpudeploy/approval", "description": "Signature: 0"}
    assert here.api.acts("stranger", "POST", f"statuses/{HEAD}", status, role="read")[0] == 403
    monkeypatch.setenv("GITHUB_TOKEN", "a-token")
    here.as_ourselves()
    here.on_push()
    _refused(at, "has no comment of ours with a plan")


# An approval is used up by what it began.


def _applied(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.on_push()
    applied = at.run(*APPLY)
    assert applied.code == 0, applied.all


def _destroyed(at: CommandLine) -> int:
    """How many slices were ever asked for before."""
    assert at.run("destroy", "gemma.yaml", "-auto-approve").code == 0
    return len(at.requested_zones())


def test_after_a_destroy_a_push_without_a_pull_request_buys_nothing_by_an_old_approval(pipeline: Both) -> None:
    at, here = pipeline
    _applied(pipeline)
    before = _destroyed(at)
    here.api.history = [MERGED, LATER]
    here.on_push(LATER, merged=False)
    _refused(at, "used up", before=before)


def test_after_a_destroy_the_workflow_of_the_merge_that_is_run_again_buys_nothing(pipeline: Both) -> None:
    at, _ = pipeline
    _applied(pipeline)
    _refused(at, "used up: an apply or a destroy has begun since", before=_destroyed(at))


def test_a_fingerprint_that_was_accepted_is_used_up_too(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    fingerprint = here.outputs["fingerprint"]
    here.on_push()
    assert at.run(*APPLY, "-accept", fingerprint).code == 0
    before = _destroyed(at)
    again = at.run(*APPLY, "-accept", fingerprint)
    assert again.code == 11
    assert len(at.requested_zones()) == before


def test_what_was_reached_and_ended_by_hand_before_the_merge_is_used_up(pipeline: Both) -> None:
    at, here = pipeline
    _planned(pipeline)
    assert at.run("apply", "gemma.yaml", "-auto-approve").code == 0
    before = _destroyed(at)
    here.on_push()
    _refused(at, "used up", before=before)


def test_a_slice_that_was_preempted_is_not_bought_again_by_the_old_approval(pipeline: Both) -> None:
    at, _ = pipeline
    _applied(pipeline)
    before = len(at.requested_zones())
    at.emulator.preempt(next(iter(at.slices)))
    at.clock.sleep(3600)
    _refused(at, "used up", before=before)


def test_a_run_that_was_ended_by_a_destroy_is_not_resumed(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "timings", "waiting": 50_000.0})
    _planned(pipeline)
    here.on_push()
    assert at.run(*APPLY).code == 12
    before = _destroyed(at)
    here.on_schedule()
    assert "Nothing is in progress." in at.run(*APPLY, "-resume").out
    assert len(at.requested_zones()) == before
    here.on_push()
    _refused(at, "used up", before=before)


@pytest.mark.parametrize("after", [0.0, 20.0, 90.0, 160.0])
def test_a_run_that_is_killed_is_continued_and_its_approval_is_used_up_all_the_same(
    pipeline: Both, after: float
) -> None:
    at, here = pipeline
    _planned(pipeline)
    here.on_push()
    at.killed(after, *APPLY)
    continued = at.run(*APPLY)
    assert continued.code == 0, continued.all
    assert list(at.slices.values()) == ["ACTIVE"]
    _refused(at, "used up", before=_destroyed(at))


def test_a_schedule_does_not_continue_what_a_person_began_and_stopped(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "timings", "waiting": 50_000.0})
    assert at.run("apply", "gemma.yaml", "-auto-approve", "-timeout", "10m").code == 12
    here.on_schedule()
    assert "Nothing is in progress." in at.run(*APPLY, "-resume").out


def test_what_the_merge_began_is_continued_by_the_schedule_after_a_person_looked_after_it(pipeline: Both) -> None:
    at, here = pipeline
    at.emulator.script({"fault": "timings", "waiting": 5000.0})
    _planned(pipeline)
    here.on_push()
    assert at.run(*APPLY).code == 12
    assert at.run("apply", "gemma.yaml", "-auto-approve", "-timeout", "10m").code == 12
    here.on_schedule()
    resumed = at.run(*APPLY, "-resume", "-timeout", "4h")
    assert resumed.code == 0, resumed.all
    assert list(at.slices.values()) == ["ACTIVE"]


# GitLab: a plan of the protected branch is signed as a file, which other jobs of the pipeline can write over.

SIGNED = ("ci", "apply", "gemma.yaml", "-approval", "told")


@pytest.fixture
def gitlab(cli: Open, monkeypatch: pytest.MonkeyPatch) -> tuple[CommandLine, GitLab]:
    at = cli()
    at.write()
    return at, GitLab(monkeypatch)


Its = tuple[CommandLine, GitLab]


def _signed(gitlab: Its, profile: str = PROFILE, commit: str = MERGED) -> Path:
    at, here = gitlab
    at.write(profile)
    here.on_push(commit)
    planned = at.run(*PLAN, "-artifacts", "told")
    assert planned.code == 0, planned.all
    return at.folder / "told"


def test_on_gitlab_the_plan_that_was_signed_for_the_commit_is_applied_once(gitlab: Its) -> None:
    at, _ = gitlab
    _signed(gitlab)
    applied = at.run(*SIGNED)
    assert applied.code == 0, applied.all
    before = _destroyed(at)
    again = at.run(*SIGNED)
    assert again.code == 11
    assert "used up" in again.err
    assert len(at.requested_zones()) == before


@pytest.mark.parametrize("name", ["plan.md", "approval"])
def test_on_gitlab_another_job_that_writes_over_the_files_approves_nothing(gitlab: Its, name: str) -> None:
    at, _ = gitlab
    answer = _signed(gitlab)
    text = (answer / name).read_text("utf-8")
    changed = text.replace("1 to add", "0 to add") if name == "plan.md" else f"{text[:-5]}0000\n"
    (answer / name).write_text(changed, encoding="utf-8")
    refused = at.run(*SIGNED)
    assert refused.code == 11, refused.all
    assert "not those that were signed" in refused.err
    assert not at.requested_zones()


@pytest.mark.parametrize(("commit", "branch"), [(LATER, "main"), (MERGED, "staging"), (MERGED, "")])
def test_on_gitlab_files_of_another_commit_or_branch_approve_nothing(gitlab: Its, commit: str, branch: str) -> None:
    at, here = gitlab
    _signed(gitlab)
    here.on_push(commit, branch=branch)
    refused = at.run(*SIGNED)
    assert refused.code == 11
    assert f"not those that were signed for commit {commit[:12]} of {branch or 'no branch'}" in refused.err
    assert not at.requested_zones()


@pytest.mark.parametrize("is_protected", [True, False], ids=["with the key", "without"])
def test_on_gitlab_a_merge_request_signs_nothing(gitlab: Its, *, is_protected: bool) -> None:
    at, here = gitlab
    here.on_merge_request(is_protected=is_protected)
    assert at.run(*PLAN, "-artifacts", "told").code == 0
    assert not (at.folder / "told" / "approval").exists()
    here.on_push()
    refused = at.run(*SIGNED)
    assert refused.code == 11
    assert "holds no signed plan" in refused.err
    assert not at.requested_zones()


def test_on_gitlab_a_job_without_the_key_neither_signs_nor_believes(gitlab: Its) -> None:
    at, here = gitlab
    answer = _signed(gitlab)
    signature = (answer / "approval").read_text("utf-8")
    here.on_push(is_protected=False)
    assert "No approval can be verified" in at.run(*SIGNED).err
    (answer / "approval").unlink()
    assert at.run(*PLAN, "-artifacts", "told").code == 0
    assert not (answer / "approval").exists()
    assert APPROVAL_KEY not in signature


def test_on_gitlab_an_apply_that_is_refused_signs_nothing_by_showing_what_it_would_do(gitlab: Its) -> None:
    at, _ = gitlab
    answer = _signed(gitlab)
    at.write(DEARER)
    for _ in range(2):
        assert at.run(*SIGNED, "-artifacts", "told").code == 11
    assert "v6e-4" in (answer / "plan.md").read_text("utf-8")
    assert not at.requested_zones()


def test_on_gitlab_a_merge_request_of_a_fork_is_validated_and_nothing_more(gitlab: Its) -> None:
    """Even where a member runs it in this project, with its variables."""
    at, here = gitlab
    here.on_merge_request(source_project="2", is_protected=True)
    result = at.run(*PLAN)
    assert result.code == 0, result.all
    assert "no plan is made" in result.out
    assert not at.emulator.requests
