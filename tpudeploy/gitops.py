"""A plan becomes a comment on a pull request; what was approved there becomes an apply; drift becomes issues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from tpudeploy import loading
from tpudeploy.config.profile import Profile
from tpudeploy.core import approval
from tpudeploy.core.approval import Marker
from tpudeploy.core.deviation import Deviation, deviation
from tpudeploy.core.revision import Revision, revision
from tpudeploy.domain.diagnostics import Diagnostic, errors_in
from tpudeploy.domain.errors import Unapproved
from tpudeploy.domain.events import Event
from tpudeploy.domain.forge import Comment, Pipeline
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Goal, Plan
from tpudeploy.ports import Forge
from tpudeploy.views import issue, markdown
from tpudeploy.views.fitted import Fitted
from tpudeploy.workspace import Workspace

P = TypeVar("P", bound=Plan)
LABEL = "tpudeploy-drift"
_MARKER_BYTES = 20_000  # more deployments than that change at once only by somebody's saying so


@frozen
class Proposal:
    """What a pull request is told. `comment` is within GitHub's limit and has the marker; `summary` may be longer."""

    marker: Marker
    comment: str
    summary: str


def proposal(plan: Plan, pipeline: Pipeline, *, label: str, orphans: Iterable[str]) -> Proposal:
    """A plan with errors, or one that is not shown as a whole, is told and approves nothing."""
    mark = approval.marker(plan, label=label, commit=pipeline.commit)
    sides, left, whole = _revisions(plan), tuple(orphans), mark.whole

    def told(limit: int) -> Fitted:
        return markdown.plan(plan, sides, orphans=left, whole=whole, run_url=pipeline.run_url, limit=limit)

    if len(approval.dumps(mark)) > _MARKER_BYTES:
        mark = _void(mark)
    short = told(markdown.COMMENT_BYTES - len(approval.dumps(mark)))
    mark = mark if short.is_whole and not errors_in(plan.diagnostics) else _void(mark)
    summary = told(markdown.SUMMARY_BYTES).text
    return Proposal(marker=mark, comment=f"{approval.dumps(mark)}\n{short.text}", summary=summary)


def refusal(message: str, hint: str, diagnostics: Iterable[Diagnostic], pipeline: Pipeline, *, label: str) -> Proposal:
    """Where no plan could be made. An earlier one, which was for another commit, is no approval any more."""
    mark = Marker(about="plan", label=label, commit=pipeline.commit, goals={})
    told = markdown.failure(
        message, hint, tuple(diagnostics), run_url=pipeline.run_url, limit=markdown.COMMENT_BYTES - 1000
    )
    return Proposal(marker=mark, comment=f"{approval.dumps(mark)}\n{told.text}", summary=told.text)


def propose(forge: Forge, pull: int, of: Proposal) -> Comment:
    """One comment for each label, updated in place."""
    return forge.tell(pull, _same(of.marker), of.comment)


def tell_result(forge: Forge, pipeline: Pipeline, text: str, *, label: str) -> None:
    """What an apply came to, on the pull request that was merged; beside the plan, which stays what was approved."""
    pull = forge.merged_by(pipeline.commit)
    if pull is None:
        return
    mark = Marker(about="apply", label=label, commit=pipeline.commit, goals={})
    forge.tell(pull, _same(mark), f"{approval.dumps(mark)}\n{text}")


def check_approval(plan: Plan, forge: Forge | None, pipeline: Pipeline, *, label: str, accepted: str) -> None:
    """Raise `errors.Unapproved` unless somebody said yes to all that `plan` would do: by merging, or by `accepted`."""
    if not approval.unapproved(plan, (), accepted=accepted):
        return
    if accepted:
        raise _unapproved(plan, f"The plan is no longer {accepted}.")
    if forge is None:
        raise _unapproved(plan, "Nobody has approved this plan: there is no pull request to look at.")
    mark, why = _approved_with(forge, pipeline.commit, label)
    marks = [] if mark is None else [mark]
    missing = approval.unapproved(plan, marks)
    # Another run may have been left out for this one: what it was to apply was approved with its own pull request.
    for commit in forge.history(pipeline.commit)[1:] if missing else ():
        mark, _ = _approved_with(forge, commit, label)
        marks += [] if mark is None else [mark]
        missing = approval.unapproved(plan, marks)
        if not missing:
            break
    if missing:
        names = ", ".join(goal.name for goal in missing)
        raise _unapproved(plan, why or f"The plan for {names} is not the one that was approved by merging.")


def _approved_with(forge: Forge, commit: str, label: str) -> tuple[Marker | None, str]:
    """What was approved with the pull request that brought a commit; else why there is nothing."""
    pull = forge.merged_by(commit)
    if pull is None:
        return None, f"No one merged pull request brought {commit}: nobody has approved this plan."
    comment = forge.comment(pull, _same(Marker(about="plan", label=label, goals={})))
    mark = None if comment is None else approval.loads(comment.body)
    if mark is None:
        return None, f"Pull request #{pull} has no plan of ours that was approved with it."
    if not mark.is_approval:
        return None, f"The plan on pull request #{pull} was cut short, or none: it approves nothing."
    return mark, ""


def only_begun(plan: P) -> P:
    """What earlier runs began and did not end, and successors for runs that end: the profile asked for those."""
    return replace(plan, goals=tuple(g for g in plan.goals if g.resumes or g.is_renewal))


def orphans(workspace: Workspace, profiles: Iterable[Profile]) -> tuple[str, ...]:
    """Deployments with a state here that none of these profiles is about."""
    named = {p.spec.name for p in profiles}
    return tuple(name for name in workspace.states.names() if name not in named)


def deviations(
    workspace: Workspace, profiles: Iterable[Profile], *, on_event: Callable[[Event], None] | None = None
) -> tuple[Deviation, ...]:
    """What is not as it was left, deployment by deployment. What is still under way is none."""
    known = tuple(profiles)
    plan = workspace.plan(known, on_event=on_event)
    stands = {s.name: s for s in workspace.status(known)}
    asked = {g.name: g for g in workspace.plan(known, refresh_only=True, attest=True, on_event=on_event).goals}
    found = (deviation(goal, stands[goal.name], asked[goal.name]) for goal in plan.goals)
    return tuple(d for d in found if d is not None)


def report(forge: Forge, profiles: Iterable[Profile], found: Iterable[Deviation]) -> None:
    """One issue a deployment: opened, kept up to date, closed once all is well again."""
    wrong = {d.name: d for d in found}
    for name, each in wrong.items():
        mark = Marker(about="drift", label=name, goals={})
        body = f"{approval.dumps(mark)}\n{issue.body(each)}"
        forge.report(_same(mark), LABEL, issue.title(each), body)
    well = {p.spec.name for p in profiles} - wrong.keys()
    for open_ in forge.issues(LABEL):
        of = approval.loads(open_.body)
        if of is not None and of.about == "drift" and of.label in well:
            forge.settle(open_, issue.settled(of.label))


def _revisions(plan: Plan) -> Mapping[str, Revision]:
    return {goal.name: _revision(goal) for goal in plan.goals if _changes(goal)}


def _revision(goal: Goal) -> Revision:
    wanted = goal.deployment
    first = next((c for c in goal.changes if c.action is not Action.NO_OP and c.slice_name), None)
    stands = None if wanted is None or first is None else loading.before(wanted, first)
    return revision(goal.name, stands, wanted)


def _changes(goal: Goal) -> bool:
    return any(c.action is not Action.NO_OP for c in goal.changes)


def _same(of: Marker) -> Callable[[str], bool]:
    """Whether a text is the one that `of` would be put in the place of."""

    def is_it(body: str) -> bool:
        known = approval.loads(body)
        return known is not None and (known.about, known.label) == (of.about, of.label)

    return is_it


def _void(mark: Marker) -> Marker:
    return replace(mark, whole="", goals={})


def _unapproved(plan: Plan, why: str) -> Unapproved:
    whole = approval.plan_print(plan)
    return Unapproved(why, hint=f"Nothing was changed. Read the plan above; to say yes to it, pass -accept {whole}.")
