"""Plan ↔ JSON: the document that `plan --json` prints, and under `saved` all that an apply needs.

Who only reads plans needs none of `saved`; what it holds may change with any version. A document of another format is
refused, and so is one whose parts do not belong together: nobody edits what somebody else has approved.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from tpudeploy.domain.errors import PlanTooNew, PlanUnreadable
from tpudeploy.domain.plan import Goal, Plan
from tpudeploy.domain.serialization import to_json
from tpudeploy.planning.approval import plan_print
from tpudeploy.reconcile.wanted import CONTAINER_NAME
from tpudeploy.serialization.typed import read

FORMAT = "tpudeploy.plan/1"
_FAMILY = "tpudeploy.plan/"
_BEGINNING = 200
# What plans of the same format say since a later version, and an older file may lack.
_ADDED_LATER = frozenset(
    {"fingerprint", "slices_at_once", "seconds_at_once", "usd_per_hour_at_once", "to_verify", "would_not_start"}
)


def is_plan(text: str) -> bool:
    """Whether it begins as a saved plan does, however damaged the rest is."""
    return text.startswith("{") and f'"{_FAMILY}' in text[:_BEGINNING]


def dumps(plan: Plan) -> str:
    saved = to_json(replace(plan, goals=tuple(map(_lean, plan.goals)), source=""))
    document = {**_shown(plan), "digest": _digest(saved), "saved": saved}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def loads(text: str, *, source: str) -> Plan:
    """Raise `errors.PlanUnreadable` or `errors.PlanTooNew`; `source` names the file."""
    try:
        document = json.loads(text)
        written = document["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause
    if written != FORMAT:
        raise PlanTooNew(
            f"{source} is written in the format `{written}`; this tpudeploy reads `{FORMAT}`.",
            hint="Apply it with the version of tpudeploy that made it, or make a new plan.",
        )
    return _whole(document, source)


def _whole(document: dict[str, Any], source: str) -> Plan:
    digest, saved = document.pop("digest", None), document.pop("saved", None)
    if saved is None:
        raise _unreadable(source, "it was printed by -json, and lacks what an apply needs")
    if digest != _digest(saved):
        raise _unreadable(source, "it was changed after it was saved")
    try:
        plan = read(Plan, saved)
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause
    if not _is_shown_by(document, json.loads(json.dumps(_shown(plan)))):
        raise _unreadable(source, "what it shows is not what it would do")
    return replace(plan, source=source)


def _shown(plan: Plan) -> dict[str, object]:
    """What `plan --json` prints of it."""
    return {**plan.to_dict(), "fingerprint": plan_print(plan)}


def _is_shown_by(document: Any, shown: Any) -> bool:
    """Return whether a document says what `shown` says, but for what an older version did not write."""
    if isinstance(document, dict) and isinstance(shown, dict):
        is_complete = shown.keys() - document.keys() <= _ADDED_LATER
        return is_complete and all(key in shown and _is_shown_by(part, shown[key]) for key, part in document.items())
    if isinstance(document, list) and isinstance(shown, list):
        return len(document) == len(shown) and all(map(_is_shown_by, document, shown))
    return bool(document == shown)


def _lean(goal: Goal) -> Goal:
    """Where each line came from stands in its changes; of the profile's other sources one decides (see wanted.py)."""
    if goal.deployment is None:
        return goal
    origins = {path: at for path, at in goal.deployment.origins.items() if path == CONTAINER_NAME}
    return replace(goal, deployment=replace(goal.deployment, origins=origins))


def _digest(saved: Any) -> str:
    text = json.dumps(saved, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _unreadable(source: str, why: str) -> PlanUnreadable:
    return PlanUnreadable(
        f"{source} is not a saved plan that we can read ({why}).", hint="Make it again: `tpudeploy plan -out FILE`."
    )
