"""What a person approved by merging: fingerprints of plans, and the hidden first line of the comment that holds them.

A fingerprint is over what would be done and become, not over when and where it was planned: no time, price, file, line
or slice name is part of it, so that two machines agree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal, Plan

_BEGINS, _ENDS = "<!-- tpudeploy ", " -->"
_VERSION = 1


@frozen
class Marker:
    """The hidden first line of a text of ours. `about` is `plan`, `apply` or `drift`; `label` tells several apart.

    `goals` are the fingerprints of the deployments that would change, `whole` that of all together; none of them is
    there where the text shows less than the plan, or no plan.
    """

    about: str
    label: str = ""
    commit: str = ""
    whole: str = ""
    goals: Mapping[str, str]

    @property
    def is_approval(self) -> bool:
        return bool(self.whole)


def marker(plan: Plan, *, label: str, commit: str) -> Marker:
    goals = {g.name: goal_print(g) for g in plan.goals if _does_something(g)}
    return Marker(about="plan", label=label, commit=commit, whole=plan_print(plan), goals=goals)


def dumps(of: Marker) -> str:
    """One line, in which nothing ends the comment early."""
    tree = {"v": _VERSION, "about": of.about, "label": of.label, "commit": of.commit}
    tree |= {"whole": of.whole, "goals": dict(of.goals)}
    text = json.dumps(tree, sort_keys=True).replace(">", "\\u003e").replace("--", "-\\u002d")
    return f"{_BEGINS}{text}{_ENDS}"


def loads(body: str) -> Marker | None:
    """None for a text that is none of ours, or of a version that we do not know."""
    line = body.partition("\n")[0].rstrip()
    if not (line.startswith(_BEGINS) and line.endswith(_ENDS)):
        return None
    try:
        tree = json.loads(line.removeprefix(_BEGINS).removesuffix(_ENDS))
        if tree["v"] != _VERSION:
            return None
        goals = {str(name): str(print_) for name, print_ in tree["goals"].items()}
        words = {key: str(tree[key]) for key in ("about", "label", "commit", "whole")}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Marker(goals=goals, **words)


def plan_print(plan: Plan) -> str:
    """The same for two plans that do the same to the same deployments."""
    return _hash({g.name: goal_print(g) for g in plan.goals if _does_something(g)})


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


def unapproved(plan: Plan, approved: Iterable[Marker], *, accepted: str = "") -> tuple[Goal, ...]:
    """The goals that would do what nobody has said yes to. What an earlier run began was approved then, and a successor
    for a run that ends with the profile that asks for it.

    `accepted` is the fingerprint of a whole plan that a person named.
    """
    if accepted and accepted == plan_print(plan):
        return ()
    known = {(name, print_) for m in approved if m.is_approval for name, print_ in m.goals.items()}
    asked = (g for g in plan.goals if _does_something(g) and not g.resumes and not g.is_renewal)
    return tuple(g for g in asked if (g.name, goal_print(g)) not in known)


def _does_something(goal: Goal) -> bool:
    return any(c.action is not Action.NO_OP for c in goal.changes)


def _change(of: Change) -> Mapping[str, object]:
    return {
        "address": of.address,
        "action": of.action,
        "create_before_destroy": of.create_before_destroy,
        "fields": [[f.path, f.before, f.after] for f in sorted(of.fields, key=lambda f: f.path)],
    }


def _hash(value: Mapping[str, object]) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
