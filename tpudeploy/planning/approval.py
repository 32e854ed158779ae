"""Approvals by merging: fingerprints of plans, the marker in the comment with the plan, and its signature.

The fingerprint of a plan covers its effects and the states that it was made for: how each deployment would change, and
how many applies and destroys had begun in its state. Time, prices, files, lines and slice names are not part of it, so
two machines agree. The start of an apply or a destroy changes the count, so no fingerprint can approve anything twice.

The comment itself proves nothing: everyone with write access can edit it, and every workflow of the repository writes
as the same bot. An approval requires a signature with a key that only protected jobs have. It covers the comment (id,
text, time of the last edit) and the merge (repository, pull request, base branch, head commit).

Why: decisions 28 and 51 in docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence

from tpudeploy.domain.forge import Comment, Pipeline, PullRequest
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal, Plan

MIN_KEY_LENGTH = 32  # characters; `openssl rand -hex 32` prints 64
_BEGINS, _ENDS = "<!-- tpudeploy ", " -->"
_VERSION = 2
_SIGNATURE_LENGTH = 32  # hexadecimal digits, 128 bits: a commit status has 140 characters


@frozen
class Approval:
    """The approvable content of a plan for one deployment: the fingerprint of its effects, and its state."""

    effects: str
    lineage: str
    begun: int


@frozen
class Marker:
    """The hidden first line of a text of ours. `about` is `plan`, `apply` or `drift`; `label` distinguishes several.

    `commit` is the head commit that the plan was made for, `branch` the one that it would be merged into. `goals` has
    an entry for each deployment that would change, `whole` is the fingerprint of all together; both are empty where the
    text shows less than the plan, or no plan.
    """

    about: str
    label: str = ""
    commit: str = ""
    branch: str = ""
    whole: str = ""
    goals: Mapping[str, Approval]

    @property
    def is_approval(self) -> bool:
        return bool(self.whole)


def marker(plan: Plan, *, label: str, commit: str, branch: str) -> Marker:
    whole = plan_print(plan)
    return Marker(about="plan", label=label, commit=commit, branch=branch, whole=whole, goals=_approvals(plan))


def dumps(marker: Marker) -> str:
    """Return the marker as one line, in which no character sequence ends the comment early."""
    tree = {
        "v": _VERSION,
        "about": marker.about,
        "label": marker.label,
        "commit": marker.commit,
        "branch": marker.branch,
    }
    tree |= {"whole": marker.whole, "goals": {name: _fields(approval) for name, approval in marker.goals.items()}}
    text = json.dumps(tree, sort_keys=True).replace(">", "\\u003e").replace("--", "-\\u002d")
    return f"{_BEGINS}{text}{_ENDS}"


def loads(body: str) -> Marker | None:
    """Return the marker of a text, or None if it has none or one of an unknown version."""
    line = body.partition("\n")[0].rstrip()
    if not (line.startswith(_BEGINS) and line.endswith(_ENDS)):
        return None
    try:
        tree = json.loads(line.removeprefix(_BEGINS).removesuffix(_ENDS))
        if tree["v"] != _VERSION:
            return None
        goals = {str(name): _approval(*fields) for name, fields in tree["goals"].items()}
        words = {key: str(tree[key]) for key in ("about", "label", "commit", "branch", "whole")}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Marker(goals=goals, **words)


def sign_comment(key: str, repository: str, pull: PullRequest, label: str, comment: Comment) -> str:
    """Return the signature of a comment as it is now, for one merge. Any edit changes it, even one that is undone."""
    merge = (repository, pull.number, pull.base_branch, pull.head_commit, label)
    return _sign(key, ("comment", *merge, comment.id, comment.updated_at, comment.body))


def sign_file(key: str, pipeline: Pipeline, label: str, text: str) -> str:
    """Return the signature of a plan that is handed on as a file, for the commit and branch of this pipeline."""
    return _sign(key, ("file", pipeline.repository, pipeline.commit, pipeline.branch, label, text))


def is_signature(claimed: str, expected: str) -> bool:
    """Return whether two signatures are equal, in constant time."""
    return hmac.compare_digest(claimed.encode(), expected.encode())


def plan_print(plan: Plan) -> str:
    """Return a fingerprint that is equal for plans with the same effects on the same deployments in the same states."""
    return _hash({name: _fields(approval) for name, approval in _approvals(plan).items()})


def goal_print(goal: Goal) -> str:
    changes = sorted((c for c in goal.changes if c.action is not Action.NO_OP), key=lambda c: c.replica)
    return _hash(
        {
            "name": goal.name,
            "wanted": goal.fingerprint,
            "adopts": sorted(goal.adopts),
            "changes": [_change(c) for c in changes],
        }
    )


def unapproved_goals(plan: Plan, markers: Iterable[Marker], *, accepted: str = "") -> tuple[Goal, ...]:
    """Return the goals without an approval.

    The work of an earlier run was approved then, and a successor for a run that ends by the profile. `accepted` is the
    fingerprint of a whole plan that the user named.
    """
    if accepted and accepted == plan_print(plan):
        return ()
    approvals = {(name, approval) for m in markers if m.is_approval for name, approval in m.goals.items()}
    return tuple(g for g in goals_needing_approval(plan) if (g.name, _goal_approval(g)) not in approvals)


def goals_needing_approval(plan: Plan) -> tuple[Goal, ...]:
    """Return the goals whose changes neither an earlier approval nor the profile itself covers."""
    return tuple(g for g in plan.goals if is_carried_out(g) and not g.resumes and not g.is_renewal)


def spent_goals(goals: Iterable[Goal], markers: Iterable[Marker]) -> tuple[Goal, ...]:
    """Return the goals whose approval was for a state in which an apply or a destroy has begun since."""
    effects = {(name, approval.effects) for m in markers if m.is_approval for name, approval in m.goals.items()}
    return tuple(g for g in goals if (g.name, goal_print(g)) in effects)


def _approvals(plan: Plan) -> dict[str, Approval]:
    return {g.name: _goal_approval(g) for g in plan.goals if is_carried_out(g)}


def _goal_approval(goal: Goal) -> Approval:
    # Each plan creates a new lineage for a state that was never written, so it is left out.
    return Approval(effects=goal_print(goal), lineage=goal.lineage if goal.serial else "", begun=goal.begun)


def _fields(approval: Approval) -> list[str | int]:
    return [approval.effects, approval.lineage, approval.begun]


def _approval(effects: str, lineage: str, begun: int) -> Approval:
    return Approval(effects=str(effects), lineage=str(lineage), begun=int(begun))


def is_carried_out(goal: Goal) -> bool:
    """Return whether an apply changes something for this goal. Goals with errors are neither approved nor applied."""
    return not goal.errors and any(c.action is not Action.NO_OP for c in goal.changes)


def _change(change: Change) -> Mapping[str, object]:
    return {
        "address": change.address,
        "action": change.action,
        "create_before_destroy": change.create_before_destroy,
        "fields": [[f.path, f.before, f.after] for f in sorted(change.fields, key=lambda f: f.path)],
    }


def _hash(value: Mapping[str, object]) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _sign(key: str, parts: Sequence[str | int]) -> str:
    # JSON separates the parts, so that no text of one can be taken for the next.
    text = json.dumps([f"tpudeploy/{_VERSION}", *parts], ensure_ascii=True, separators=(",", ":"))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:_SIGNATURE_LENGTH]
