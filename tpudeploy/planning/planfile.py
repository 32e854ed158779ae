"""Write and read plans: the document that `plan --json` prints, and under `saved` all that an apply needs.

A program that only reads plans does not need `saved`, whose contents may change with any version. A document of another
format is refused, and so is one whose parts do not belong together: an approved plan must not be edited.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from tpudeploy.catalog.generations import FORMER_NAMES
from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.errors import PlanTooNew, PlanUnreadable
from tpudeploy.domain.notify import ignoring
from tpudeploy.domain.plan import Goal, Plan
from tpudeploy.domain.serialization import to_json
from tpudeploy.planning.plan_print import plan_print
from tpudeploy.reconcile.desired import CONTAINER_NAME
from tpudeploy.serialization.typed import read

FORMAT = "tpudeploy.plan/1"
_FAMILY = "tpudeploy.plan/"
_BEGINNING = 200
_NOT_BY_FILE = "a plan file has no targets"
# Keys that a later version added to the same format, so a file of an earlier version may lack them.
_ADDED_LATER = frozenset(
    {
        "ceiling",
        "ceiling_of_additions",
        "drain_seconds_most",
        "fingerprint",
        "forgets",
        "notify",
        "pipeline_parallel_size",
        "places",
        "replicas_serving",
        "router",
        "scale",
        "slices_at_once",
        "slices_at_first",
        "starts",
        "seconds_at_once",
        "sees_all_requests",
        "usd_per_hour_at_once",
        "to_verify",
        "waits",
        "would_not_start",
    }
)


def is_plan(text: str) -> bool:
    """Return whether a text begins like a saved plan, even if the rest is damaged."""
    return text.startswith("{") and f'"{_FAMILY}' in text[:_BEGINNING]


def dumps(plan: Plan) -> str:
    """Return the document of a plan."""
    saved = to_json(replace(plan, goals=tuple(map(_lean, plan.goals)), source=""))
    document = {**_printed(plan), "digest": _digest(saved), "saved": saved}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def loads(text: str, *, source: str) -> Plan:
    """Return the plan of a document. `source` names its file.

    Raise `errors.PlanUnreadable` or `errors.PlanTooNew`.
    """
    try:
        document = json.loads(text)
        document_format = document["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause
    if document_format != FORMAT:
        raise PlanTooNew(
            f"{source} is written in the format `{document_format}`; this tpudeploy reads `{FORMAT}`.",
            hint="Apply it with the version of tpudeploy that made it, or make a new plan.",
        )
    return _checked_plan(document, source)


def _checked_plan(document: dict[str, Any], source: str) -> Plan:
    digest, saved = document.pop("digest", None), document.pop("saved", None)
    if saved is None:
        raise _unreadable(source, "it was printed by -json, and lacks what an apply needs")
    if digest != _digest(saved):
        raise _unreadable(source, "it was changed after it was saved")
    try:
        plan = read(Plan, _migrated(saved))
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause
    for goal in plan.goals:
        _check_name_of_slice(goal, source)
    if not _is_equal(document, json.loads(json.dumps(_printed(plan)))):
        raise _unreadable(source, "what it shows is not what it would do")
    return replace(plan, goals=tuple(map(_without_notify, plan.goals)), source=source)


def _without_notify(goal: Goal) -> Goal:
    """Return the goal without whom to notify: no file that is not a profile of its user says what runs here."""
    goal = replace(goal, notify=ignoring(goal.notify, _NOT_BY_FILE))
    deployment = goal.deployment
    if deployment is None:
        return goal
    return replace(goal, deployment=replace(deployment, notify=ignoring(deployment.notify, _NOT_BY_FILE)))


def _check_name_of_slice(goal: Goal, source: str) -> None:
    """Raise `errors.PlanUnreadable` for a slice by a name that meant more chips here than everywhere else."""
    name = "" if goal.deployment is None else goal.deployment.accelerator.name
    if name in FORMER_NAMES:
        raise _unreadable(source, f"an earlier version saved it, and called {FORMER_NAMES[name]} by the name {name}")


def _migrated(saved: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a plan file whose places name their API, and whose changes have a ceiling.

    Earlier versions had one API for all places, and a price at once that was null if one was unknown.
    """
    for goal in saved["goals"]:
        for change in goal["changes"]:
            if "ceiling" not in change:
                keys = ("usd_per_hour_at_once", "usd_per_hour_after", "usd_per_hour_before")
                usd = next((change[key] for key in keys if change.get(key) is not None), 0.0)
                is_unknown = change.get("usd_per_hour_at_once") is None and change["action"] in {"create", "replace"}
                change["ceiling"] = {"usd_per_hour": usd, "prices": 1, "unknown_prices": int(is_unknown)}
        deployment = goal["deployment"]
        if deployment is not None and "runtime_version" in deployment:
            backend = deployment.pop("backend", DEFAULT_BACKEND.value)
            deployment["runtimes"] = {backend: deployment.pop("runtime_version")}
            deployment["candidates"] = [{**place, "backend": backend} for place in deployment["candidates"]]
    return saved


def _printed(plan: Plan) -> dict[str, object]:
    """Return the document that `plan --json` prints."""
    return {**plan.to_dict(), "fingerprint": plan_print(plan)}


def _is_equal(document: Any, printed: Any) -> bool:
    """Return whether a document equals the printed plan, except for keys that an older version did not write."""
    if isinstance(document, dict) and isinstance(printed, dict):
        is_complete = printed.keys() - document.keys() <= _ADDED_LATER
        return is_complete and all(key in printed and _is_equal(part, printed[key]) for key, part in document.items())
    if isinstance(document, list) and isinstance(printed, list):
        return len(document) == len(printed) and all(map(_is_equal, document, printed))
    return bool(document == printed)


def _lean(goal: Goal) -> Goal:
    """Return the goal without the origins, which its changes have. One of them decides something: see desired.py."""
    goal = _without_notify(goal)
    if goal.deployment is None:
        return goal
    origins = {path: at for path, at in goal.deployment.origins.items() if path == CONTAINER_NAME}
    return replace(goal, deployment=replace(goal.deployment, origins=origins))


def _digest(saved: Any) -> str:
    text = json.dumps(saved, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _unreadable(source: str, why: str) -> PlanUnreadable:
    return PlanUnreadable(
        f"{source} is not a saved plan that can be read ({why}).", hint="Make it again: `tpudeploy plan -out FILE`."
    )
