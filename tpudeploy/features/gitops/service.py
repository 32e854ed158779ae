"""GitOps: a plan becomes a comment on a pull request, its approval becomes an apply, and drift becomes issues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tpudeploy import loading
from tpudeploy.config.profile import Profile
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import CheckFailed, ConfigError, TpudeployError, Unapproved
from tpudeploy.domain.events import Event
from tpudeploy.domain.plan import Action, Goal, Plan, stopped_by
from tpudeploy.engine.cost_wall import budgets_now
from tpudeploy.features.gitops import approval, issue, markdown
from tpudeploy.features.gitops.approval import Marker
from tpudeploy.features.gitops.comment import Fitted
from tpudeploy.features.gitops.forge import Comment, CommitState, CommitStatus, Pipeline, PullRequest, SignedPlan
from tpudeploy.features.gitops.ports import Forge
from tpudeploy.node.revision import Revision, revision
from tpudeploy.planning.deviation import Deviation, deviation
from tpudeploy.planning.plan_print import is_carried_out, plan_print
from tpudeploy.reconcile.cost_wall import BudgetUse
from tpudeploy.text import words
from tpudeploy.workspace import Workspace

P = TypeVar("P", bound=Plan)
LABEL = "tpudeploy-drift"
MEASURED_LABEL = "tpudeploy-bench"
_MARKER_BYTES = 20_000  # a plan for more deployments than that must be approved by -accept
_KEY = "TPUDEPLOY_APPROVAL_KEY"
_SIGNATURE = "Signature of the plan comment:"
_MERGING_APPLIES = "Merging applies this plan, if it is still the same then."
_CUT_SHORT = "Merging applies nothing: the comment cannot show the whole plan."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposal:
    """The texts of `ci plan`. `comment` fits the forge's limit and has the marker; `summary` may be longer.

    `obstacle` is why merging applies nothing, or "" if it applies the plan. `signed` is the content of the file that
    approves this plan for a commit that was already pushed, or "".
    """

    marker: Marker
    comment: str
    summary: str
    obstacle: str = ""
    signed: str = ""


def budgets(workspace: Workspace, plan: Plan) -> tuple[BudgetUse, ...]:
    """Return what the budgets of a plan have left; without any, what its deployments cost this month.

    Raise as `budgets_now` does.
    """
    deployments = [goal.deployment for goal in plan.goals if goal.deployment is not None]
    return budgets_now(workspace.adapters.states, deployments, workspace.adapters.clock.now(), else_month=True)


def proposal(
    plan: Plan,
    pipeline: Pipeline,
    *,
    label: str,
    orphans: Iterable[str],
    budgets: Iterable[BudgetUse] = (),
    key: str = "",
) -> PlanProposal:
    """Return the proposal of a plan. A plan that is cut short or unsigned approves nothing.

    Goals with errors are not approved either.
    """
    marker = approval.marker(plan, label=label, commit=pipeline.commit, branch=pipeline.branch)
    sides, orphan_names, uses = _revisions(plan), tuple(orphans), tuple(budgets)

    def render(limit: int, ending: str) -> Fitted:
        return markdown.plan(
            plan,
            sides,
            orphans=orphan_names,
            budgets=uses,
            whole=marker.whole,
            ending=ending,
            run_url=pipeline.run_url,
            limit=limit,
        )

    obstacle, merging_applies = _obstacle(plan, pipeline, marker, key), _merging_applies(plan)
    room = markdown.COMMENT_BYTES - min(len(approval.dumps(marker)), _MARKER_BYTES)
    comment = render(room, obstacle or merging_applies)
    if not comment.is_whole:
        obstacle = obstacle or _CUT_SHORT
    ending = "" if pipeline.pull is None else obstacle or merging_applies
    summary = render(markdown.SUMMARY_BYTES, ending)
    is_signable = bool(key) and pipeline.pull is None and summary.is_whole and not _why_nothing_is_done(plan)
    published_marker = marker if not obstacle else replace(marker, whole="", goals={})
    return PlanProposal(
        marker=published_marker,
        comment=f"{approval.dumps(published_marker)}\n{comment.text}",
        summary=summary.text,
        obstacle=obstacle,
        signed=_signed_text(key, pipeline, marker, summary.text) if is_signable else "",
    )


def refusal(
    message: str, hint: str, diagnostics: Iterable[Diagnostic], pipeline: Pipeline, *, label: str
) -> PlanProposal:
    """Return the proposal where no plan could be made. An earlier one, for another commit, is no longer an approval."""
    marker = Marker(about="plan", label=label, commit=pipeline.commit, branch=pipeline.branch, goals={})
    text = markdown.failure(
        message, hint, tuple(diagnostics), run_url=pipeline.run_url, limit=markdown.COMMENT_BYTES - 1000
    )
    comment = f"{approval.dumps(marker)}\n{text.text}"
    return PlanProposal(marker=marker, comment=comment, summary=text.text, obstacle="No plan could be made.")


def propose(forge: Forge, pipeline: Pipeline, pull: int, plan_proposal: PlanProposal, *, key: str) -> Comment:
    """Write or update the comment of a label, and, with a key, the commit status with its signature."""
    comment = forge.tell(pull, _is_same_text(plan_proposal.marker), plan_proposal.comment)
    if key:
        context = _approval_context(plan_proposal.marker.label)
        if plan_proposal.obstacle:
            status = CommitStatus(
                context=context, verdict=CommitState.FAILURE, summary=plan_proposal.obstacle, url=pipeline.run_url
            )
        else:
            merge = PullRequest(number=pull, base_branch=pipeline.branch, head_commit=pipeline.commit)
            signature = approval.sign_comment(key, pipeline.repository, merge, plan_proposal.marker.label, comment)
            summary = f"{_SIGNATURE} {signature}"
            status = CommitStatus(context=context, verdict=CommitState.SUCCESS, summary=summary, url=pipeline.run_url)
        forge.classify(pipeline.commit, status)
    return comment


def tell_result(forge: Forge, pipeline: Pipeline, text: str, *, label: str) -> None:
    """Write the result of an apply to the merged pull request, as a comment of its own beside the approved plan."""
    marker = Marker(about="apply", label=label, commit=pipeline.commit, branch=pipeline.branch, goals={})
    for pull in forge.merged_pulls(pipeline.commit):
        if pull.base_branch == pipeline.branch:
            forge.tell(pull.number, _is_same_text(marker), f"{approval.dumps(marker)}\n{text}")


def with_approval(
    plan: P,
    forge: Forge | None,
    pipeline: Pipeline,
    *,
    label: str,
    accepted: str,
    key: str,
    files: SignedPlan | None = None,
) -> P:
    """Return the plan with the name of what approved it in each goal, and an error in each that nothing approved.

    It is approved by the fingerprint `accepted`, by signed files, or by merging the pull request that showed it. One
    deployment that is not approved stops no other, unless nothing else is to be done: then raise `errors.Unapproved`.
    """
    goals = approval.goals_needing_approval(plan)
    if not goals:
        # A renewal, which the profile approves, or a run that this one takes over: later runs may continue either.
        return _approved_by(plan, pipeline.commit or "ci apply")
    if accepted:
        if accepted != plan_print(plan):
            raise _not_approved(
                plan, goals, f"The plan is no longer {accepted}: it differs, or an apply or a destroy has begun since."
            )
        return _approved_by(plan, f"fingerprint {accepted}")
    if not key and (forge is not None or files is not None):
        why = f"No approval can be verified, because {_KEY} is not set: anybody can edit a comment or a file."
        return _approved_by(_without(plan, goals, (), why), pipeline.commit)
    if files is not None:
        marker, why = _file_marker(files, pipeline, label, key)
        markers = [marker] if marker is not None else []
        name = f"signed plan for {pipeline.commit}"
    elif forge is not None:
        markers, why = _merged_markers(plan, forge, pipeline, label, key)
        name = f"merge {pipeline.commit}"
    else:
        markers, why = [], "This plan has no approval, because there is no pull request to look at."
        name = pipeline.commit
    return _approved_by(_without(plan, approval.unapproved_goals(plan, markers), markers, why), name)


def _without(plan: P, unapproved: Sequence[Goal], markers: Sequence[Marker], why: str) -> P:
    """Return the plan with an error in each of the goals `missing`, which nothing approves: they stop no other.

    Raise `errors.Unapproved` where nothing else is to be done.
    """
    if not unapproved:
        return plan
    names = {goal.name for goal in unapproved}
    if not any(is_carried_out(goal) for goal in plan.goals if goal.name not in names):
        raise _not_approved(plan, unapproved, _why_not(unapproved, markers, why))
    errors_by_name = {goal.name: _not_approved(plan, unapproved, _why_not([goal], markers, why)) for goal in unapproved}
    diagnostics = {
        name: Diagnostic(code=error.code, message=f"{name} is not approved. {error.message}", hint=error.hint)
        for name, error in errors_by_name.items()
    }
    return replace(
        plan,
        goals=tuple(replace(g, errors=(diagnostics[g.name],)) if g.name in names else g for g in plan.goals),
        diagnostics=(*plan.diagnostics, *diagnostics.values()),
    )


def _why_not(goals: Sequence[Goal], markers: Sequence[Marker], why: str) -> str:
    spent = approval.spent_goals(goals, markers)
    if spent:
        names = words.some(goal.name for goal in spent)
        return f"The approval of this plan for {names} is used up: an apply or a destroy has begun since it was made."
    names = words.some(goal.name for goal in goals)
    return why or f"The plan for {names} is not the one that was approved by merging."


def _approved_by(plan: P, name: str) -> P:
    """Return the plan with the name of its approval in each goal that an earlier approval did not begin."""
    return replace(plan, goals=tuple(replace(g, approval=g.approval or name) for g in plan.goals))


def _merged_markers(plan: Plan, forge: Forge, pipeline: Pipeline, label: str, key: str) -> tuple[list[Marker], str]:
    """Return the approvals of the merges that led to the commit, and why the commit's own merge approves nothing.

    GitHub drops all waiting runs except the latest, which has to do their work: the approval of an earlier merge
    counts too if nothing has begun since.
    """
    marker, why = _signed_marker(forge, pipeline, pipeline.commit, label, key)
    markers = [] if marker is None else [marker]
    if approval.unapproved_goals(plan, markers):
        for commit in forge.history(pipeline.commit)[1:]:
            marker, _ = _signed_marker(forge, pipeline, commit, label, key)
            markers += [] if marker is None else [marker]
            if not approval.unapproved_goals(plan, markers):
                break
    return markers, why


def _merged_pull(forge: Forge, pipeline: Pipeline, commit: str) -> tuple[PullRequest | None, str]:
    """Return the one pull request that brought a commit to the pushed branch, or None and the reason."""
    pulls = forge.merged_pulls(commit)
    here = [p for p in pulls if pipeline.branch and p.base_branch == pipeline.branch]
    if not here and pulls:
        merged_into = ", ".join(f"#{p.number} into {p.base_branch}" for p in pulls)
        branch = pipeline.branch or "no branch"
        return None, f"This run is for {branch}, but the pull request was merged elsewhere ({merged_into})."
    if len(here) != 1:
        return None, f"Not exactly one merged pull request brought {commit}, so this plan has no approval."
    return here[0], ""


def _signed_marker(forge: Forge, pipeline: Pipeline, commit: str, label: str, key: str) -> tuple[Marker | None, str]:
    """Return the approval by the merge that made a commit of the pushed branch, or None and the reason."""
    pull, why = _merged_pull(forge, pipeline, commit)
    if pull is None:
        return None, why
    comment = forge.comment(pull.number, _is_same_text(Marker(about="plan", label=label, goals={})))
    marker = None if comment is None else approval.loads(comment.body)
    if comment is None or marker is None:
        return None, f"Pull request #{pull.number} has no comment of ours with a plan."
    if marker.commit != pull.head_commit:
        merged = f"but commit {pull.head_commit[:12]} was merged"
        return None, f"The plan on pull request #{pull.number} was made for commit {marker.commit[:12]}, {merged}."
    if marker.branch != pull.base_branch:
        merged = f"but it was merged into {pull.base_branch}"
        return None, f"The plan on pull request #{pull.number} was made for a merge into {marker.branch}, {merged}."
    if not marker.is_approval:
        reason = "is truncated, contains an error or is not signed: it approves nothing."
        return None, f"The plan on pull request #{pull.number} {reason}"
    expected = approval.sign_comment(key, pipeline.repository, pull, label, comment)
    statuses = forge.statuses(pull.head_commit, _approval_context(label))
    if not any(approval.is_signature(s.summary.rpartition(" ")[2], expected) for s in statuses):
        return None, (
            f"The comment with the plan on pull request #{pull.number} is not the one that was signed: a person edited "
            "it, or another workflow wrote it."
        )
    return marker, ""


def _signed_text(key: str, pipeline: Pipeline, marker: Marker, summary: str) -> str:
    """Return the content of the approving file: the marker, and a signature of it and of the plan."""
    line = approval.dumps(marker)
    return f"{line}\n{_sign_file(key, pipeline, marker.label, line, summary)}"


def _sign_file(key: str, pipeline: Pipeline, label: str, line: str, summary: str) -> str:
    text = f"{line}\n{summary.strip()}"
    return approval.sign_file(key, pipeline, label, text)


def _file_marker(files: SignedPlan, pipeline: Pipeline, label: str, key: str) -> tuple[Marker | None, str]:
    """Return the approval of signed files for this commit and branch, else why they approve nothing."""
    line, _, signature = files.signed.strip().partition("\n")
    marker = approval.loads(line)
    if marker is None:
        return None, "The file `approval` holds no signed plan: the plan was forbidden, or its job has no key."
    if not approval.is_signature(signature, _sign_file(key, pipeline, label, line, files.summary)):
        return None, (
            f"The files of the plan are not those that were signed for commit {pipeline.commit[:12]} of "
            f"{pipeline.branch or 'no branch'}."
        )
    return marker, ""


def _obstacle(plan: Plan, pipeline: Pipeline, marker: Marker, key: str) -> str:
    """Return why merging would apply nothing, apart from the length of the comment, or ""."""
    nothing_is_done = _why_nothing_is_done(plan)
    if nothing_is_done:
        return f"Merging applies nothing: {nothing_is_done}."
    if len(approval.dumps(marker)) > _MARKER_BYTES:
        return "Merging applies nothing: more deployments change than one comment can approve."
    if pipeline.pull is not None and not key:
        return f"Merging applies nothing: this pipeline has no `{_KEY}` to sign the plan with."
    return ""


def _why_nothing_is_done(plan: Plan) -> str:
    """Return why errors leave nothing of the plan to carry out, "" where they leave some, or where there are none."""
    worst = plan.worst_error
    if worst is None or (not plan.stopping_errors and any(map(is_carried_out, plan.goals))):
        return ""
    return "a check forbids this plan" if isinstance(worst, CheckFailed) else "an error stops this plan"


def _merging_applies(plan: Plan) -> str:
    """Return the last line of a plan that merging applies, with what it leaves out."""
    left_out = words.some(goal.name for goal in plan.goals if goal.errors)
    return f"{_MERGING_APPLIES} Merging leaves out {left_out}: see the errors above." if left_out else _MERGING_APPLIES


def _approval_context(label: str) -> str:
    return f"tpudeploy/approval/{label}" if label else "tpudeploy/approval"


def only_begun(plan: P) -> P:
    """Return the plan with only the unfinished work of approved pipelines, and successors for runs that end.

    Work that a user began at a terminal is left to that user: an interrupt may have been meant to end it.
    """
    return replace(plan, goals=tuple(g for g in plan.goals if _is_continued(g)))


def _is_continued(goal: Goal) -> bool:
    """Return whether a later run continues this goal. One of which nothing could be seen may be such: that is said."""
    return (goal.resumes and bool(goal.approval)) or goal.is_renewal or (bool(goal.errors) and not goal.changes)


def orphans(
    workspace: Workspace, profiles: Iterable[Profile], invalid: Mapping[str, ConfigError] | None = None
) -> tuple[str, ...]:
    """Return the deployments with a state here that none of these profiles is about.

    Return none if some files are `invalid`, because their deployments are unknown.
    """
    if invalid:
        return ()
    profile_names = {p.name for p in profiles}
    return tuple(name for name in workspace.adapters.states.names() if name not in profile_names)


def deviations(
    workspace: Workspace,
    profiles: Iterable[Profile],
    *,
    invalid: Mapping[str, ConfigError] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> tuple[tuple[Deviation, ...], Mapping[str, TpudeployError]]:
    """Return the deviations by deployment, and the deployments whose condition is unknown, with the reason.

    Work in progress is not a deviation.
    """
    known_profiles, unusable = tuple(profiles), invalid or {}
    plan = workspace.plan(known_profiles, invalid=unusable, on_event=on_event)
    statuses = {s.name: s for s in workspace.status(known_profiles, invalid=unusable)}
    drift = workspace.plan(known_profiles, refresh_only=True, attest=True, invalid=unusable, on_event=on_event)
    unknown = {name: status.error for name, status in statuses.items() if status.error is not None}
    unknown = {**_not_looked_at(plan), **_not_looked_at(drift), **unknown}
    observed = {goal.name: goal for goal in drift.goals}
    visible = [goal for goal in plan.goals if goal.name not in unknown]
    candidates = (deviation(goal, statuses[goal.name], observed[goal.name]) for goal in visible)
    return tuple(d for d in candidates if d is not None), unknown


def _not_looked_at(plan: Plan) -> dict[str, TpudeployError]:
    """Return the deployments that a plan could not observe, and why. One that a check forbids was observed."""
    reasons = ((goal.name, stopped_by(error)) for goal in plan.goals for error in goal.errors[:1])
    return {name: error for name, error in reasons if not isinstance(error, CheckFailed)}


def report(
    forge: Forge, profiles: Iterable[Profile], drifted: Iterable[Deviation], unknown: Collection[str] = ()
) -> None:
    """Open or update an issue for each deviation, and close those of deployments that are well again.

    The issue of a deployment of which nothing is known stays as it is.
    """
    drifted_by_name = {d.name: d for d in drifted}
    for name, drift_of_one in drifted_by_name.items():
        mark = Marker(about="drift", label=name, goals={})
        body = f"{approval.dumps(mark)}\n{issue.body(drift_of_one)}"
        forge.report(_is_same_text(mark), LABEL, issue.title(drift_of_one), body)
    well_names = {p.name for p in profiles} - drifted_by_name.keys() - set(unknown)
    for open_ in forge.issues(LABEL):
        mark_of_issue = approval.loads(open_.body)
        if mark_of_issue is not None and mark_of_issue.about == "drift" and mark_of_issue.label in well_names:
            forge.settle(open_, issue.resolution(mark_of_issue.label))


def tell_measured(forge: Forge, pipeline: Pipeline, marker: Marker, text: str, *, title: str, is_worse: bool) -> None:
    """Comment a measurement on its pull request; outside of one, open an issue while it is worse, and close it then."""
    body = f"{approval.dumps(marker)}\n{text}"
    is_it = _is_same_text(marker)
    if pipeline.pull is not None:
        forge.tell(pipeline.pull, is_it, body)
    elif is_worse:
        forge.report(is_it, MEASURED_LABEL, f"tpudeploy: {title}", body)
    else:
        for open_ in forge.issues(MEASURED_LABEL):
            if is_it(open_.body):
                forge.settle(open_, text)


def _revisions(plan: Plan) -> Mapping[str, Revision]:
    return {
        goal.name: _revision(goal)
        for goal in plan.goals
        if any(change.action is not Action.NO_OP for change in goal.changes)
    }


def _revision(goal: Goal) -> Revision:
    deployment = goal.deployment
    first = next((c for c in goal.changes if c.action is not Action.NO_OP and c.slice_name), None)
    current = None if deployment is None or first is None else loading.previous_deployment(deployment, first)
    return revision(goal.name, current, deployment)


def _is_same_text(marker: Marker) -> Callable[[str], bool]:
    """Return a function that recognises the text which a text with this marker replaces."""

    def is_it(body: str) -> bool:
        existing = approval.loads(body)
        return existing is not None and (existing.about, existing.label) == (marker.about, marker.label)

    return is_it


def _not_approved(plan: Plan, goals: Sequence[Goal], why: str) -> Unapproved:
    """Return the error of the goals `missing`, with the fingerprint of the plan that the others leave."""
    names = {goal.name for goal in goals}
    others = tuple(g for g in plan.goals if g.name not in names and is_carried_out(g))
    whole = plan_print(replace(plan, goals=tuple(goals)) if others else plan)
    unchanged = f"Nothing of {', '.join(names)} was changed." if others else "Nothing was changed."
    when = ", once the others are done" if others else ""
    return Unapproved(why, hint=f"{unchanged} Read the plan above; to say yes to it{when}, pass -accept {whole}.")
