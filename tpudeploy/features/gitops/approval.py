"""Approvals by merging: the marker in the comment with the plan, and its signature.

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
from dataclasses import dataclass

from tpudeploy.domain.plan import Goal, Plan
from tpudeploy.features.gitops.forge import Comment, Pipeline, PullRequest
from tpudeploy.planning.plan_print import (
    ApprovableContent,
    approvals,
    fields,
    goal_approval,
    goal_print,
    is_carried_out,
    plan_print,
)

MIN_KEY_LENGTH = 32  # characters; `openssl rand -hex 32` prints 64
_BEGINS, _ENDS = "<!-- tpudeploy ", " -->"
_VERSION = 2
_SIGNATURE_LENGTH = 32  # hexadecimal digits, 128 bits: a commit status has 140 characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The hidden first line of a text of ours. `about` is the verb of `ci`; `label` distinguishes several.

    `commit` is the head commit that the plan was made for, `branch` the one that it would be merged into. `goals` has
    an entry for each deployment that would change, `whole` is the fingerprint of all together; both are empty where the
    text shows less than the plan, or no plan.
    """

    about: str
    label: str = ""
    commit: str = ""
    branch: str = ""
    whole: str = ""
    goals: Mapping[str, ApprovableContent]

    @property
    def is_approval(self) -> bool:
        return bool(self.whole)


def marker(plan: Plan, *, label: str, commit: str, branch: str) -> Marker:
    whole = plan_print(plan)
    return Marker(about="plan", label=label, commit=commit, branch=branch, whole=whole, goals=approvals(plan))


def dumps(marker: Marker) -> str:
    """Return the marker as one line, in which no character sequence ends the comment early."""
    tree = {
        "v": _VERSION,
        "about": marker.about,
        "label": marker.label,
        "commit": marker.commit,
        "branch": marker.branch,
    }
    tree |= {"whole": marker.whole, "goals": {name: fields(approval) for name, approval in marker.goals.items()}}
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


def unapproved_goals(plan: Plan, markers: Iterable[Marker], *, accepted: str = "") -> tuple[Goal, ...]:
    """Return the goals without an approval.

    The work of an earlier run was approved then, and a successor for a run that ends by the profile. `accepted` is the
    fingerprint of a whole plan that the user named.
    """
    if accepted and accepted == plan_print(plan):
        return ()
    given = {(name, approval) for m in markers if m.is_approval for name, approval in m.goals.items()}
    return tuple(g for g in goals_needing_approval(plan) if (g.name, goal_approval(g)) not in given)


def goals_needing_approval(plan: Plan) -> tuple[Goal, ...]:
    """Return the goals whose changes neither an earlier approval nor the profile itself covers."""
    return tuple(g for g in plan.goals if is_carried_out(g) and not g.resumes and not g.is_renewal)


def spent_goals(goals: Iterable[Goal], markers: Iterable[Marker]) -> tuple[Goal, ...]:
    """Return the goals whose approval was for a state in which an apply or a destroy has begun since."""
    effects = {(name, approval.effects) for m in markers if m.is_approval for name, approval in m.goals.items()}
    return tuple(g for g in goals if (g.name, goal_print(g)) in effects)


def _approval(effects: str, lineage: str, begun: int) -> ApprovableContent:
    return ApprovableContent(effects=str(effects), lineage=str(lineage), begun=int(begun))


def _sign(key: str, parts: Sequence[str | int]) -> str:
    # JSON separates the parts, so that no text of one can be taken for the next.
    text = json.dumps([f"tpudeploy/{_VERSION}", *parts], ensure_ascii=True, separators=(",", ":"))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:_SIGNATURE_LENGTH]
