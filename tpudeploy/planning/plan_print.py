"""The fingerprint of a plan: its effects, and the states that it was made for.

It covers how each deployment would change, and how many applies and destroys had begun in its state. Time, prices,
files, lines and slice names are not part of it, so two machines agree. The start of an apply or a destroy changes the
count, so no fingerprint can approve anything twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.domain.plan import Action, Change, Goal, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovableContent:
    """The approvable content of a plan for one deployment: the fingerprint of its effects, and its state."""

    effects: str
    lineage: str
    begun: int


def plan_print(plan: Plan) -> str:
    """Return a fingerprint that is equal for plans with the same effects on the same deployments in the same states."""
    return _hash({name: fields(approval) for name, approval in approvals(plan).items()})


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


def approvals(plan: Plan) -> dict[str, ApprovableContent]:
    return {g.name: goal_approval(g) for g in plan.goals if is_carried_out(g)}


def goal_approval(goal: Goal) -> ApprovableContent:
    # Each plan creates a new lineage for a state that was never written, so it is left out.
    return ApprovableContent(effects=goal_print(goal), lineage=goal.lineage if goal.serial else "", begun=goal.begun)


def fields(approval: ApprovableContent) -> list[str | int]:
    return [approval.effects, approval.lineage, approval.begun]


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
