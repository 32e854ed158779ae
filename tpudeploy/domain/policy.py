"""A plan in the shape that policy tools read: the keys of Terraform's `show -json`, its format 1.2.

`actions` tell in their order which comes first. Attributes are nested as in a profile, so that a rule may say
`change.after.tpu.type`. Keys that only we have stand beside theirs: readers of that format leave them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from tpudeploy.domain.plan import Change, Drift

_TYPE = "tpudeploy_replica"
_ACTIONS: Mapping[str, list[str]] = {
    "no-op": ["no-op"],
    "create": ["create"],
    "update": ["update"],
    "restart": ["update"],
    "destroy": ["delete"],
}
# By the names of domain/plan.py.
_REASONS: Mapping[tuple[str, str], str] = {
    ("restart", "NONE"): "restart_because_of_serving_change",
    ("restart", "FAILED"): "restart_because_boot_failed",
    ("destroy", "SURPLUS"): "delete_because_count_index",
}


def resource_change(of: Change) -> dict[str, object]:
    """One row of `resource_changes`."""
    if of.action == "replace":
        actions = ["create", "delete"] if of.create_before_destroy else ["delete", "create"]
    else:
        actions = _ACTIONS[of.action]
    forces = [field.path.split(".") for field in of.fields if field.effect == "replace"]
    unknown = {"slice_name": True, "zone": True} if "create" in actions else {}
    return {
        **resource(of.deployment, of.replica),
        "action_reason": _reason(of),
        "change": {
            "actions": actions,
            "before": _side(of.before, of.slice_name, of.zone, of.usd_per_hour_before),
            "after": _side(of.after, "" if unknown else of.slice_name, of.zone, of.usd_per_hour_after),
            "after_unknown": unknown,
            "before_sensitive": {},
            "after_sensitive": {},
            "replace_paths": forces if of.action == "replace" else [],
        },
    }


def resource_drift(of: Drift) -> dict[str, object]:
    """One row of `resource_drift`: from what was applied to what is live. `kind` is ours."""
    is_gone = of.kind in {"deleted", "lost", "missing"}
    live = {**of.before, **{field.path: field.live for field in of.fields}}
    present = {path: value for path, value in live.items() if value is not None}
    applied = {**of.before, **{f.path: f.applied for f in of.fields if f.applied is not None}}
    return {
        **resource(of.deployment, of.replica),
        "kind": of.kind,
        "detail": of.detail,
        "change": {
            "actions": ["delete"] if is_gone else ["update"],
            "before": _side(applied, of.slice_name, of.zone),
            "after": None if is_gone else _side(present, of.slice_name, of.zone),
            "after_unknown": {},
            "before_sensitive": {},
            "after_sensitive": {},
        },
    }


def resource(deployment: str, replica: int) -> dict[str, object]:
    """What every row begins with."""
    return {
        "address": f"{deployment}[{replica}]",
        "mode": "managed",
        "type": _TYPE,
        "name": deployment,
        "index": replica,
    }


def checks(diagnostics: Iterable[Diagnostic]) -> list[dict[str, object]]:
    """One row for each code: an error fails, a warning passes and says so."""
    found: dict[str, list[Diagnostic]] = {}
    for each in diagnostics:
        found.setdefault(each.code, []).append(each)
    return [
        {
            "address": {"kind": "check", "name": code, "to_display": code},
            "status": "fail" if any(d.severity is Severity.ERROR for d in rows) else "pass",
            "instances": [],
            "problems": [{"message": d.message, "severity": d.severity, "hint": d.hint} for d in rows],
        }
        for code, rows in found.items()
    ]


def nested(attributes: Mapping[str, Json]) -> dict[str, Any]:
    """`{"tpu.type": …}` as `{"tpu": {"type": …}}`. A path that runs into a value stays as it is written."""
    root: dict[str, Any] = {}
    for path, value in attributes.items():
        *folders, last = path.split(".")
        place: Any = root
        for folder in folders:
            place = place.setdefault(folder, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
        else:
            root[path] = value
    return root


def _side(
    attributes: Mapping[str, Json], slice_name: str, zone: str, usd: float | None = None
) -> dict[str, Any] | None:
    """None where there is nothing on this side, as Terraform says it."""
    if not attributes:
        return None
    known = {"slice_name": slice_name, "zone": zone} if slice_name else {}
    price = {} if usd is None else {"usd_per_hour": usd}
    return {**nested(attributes), **known, **price}


def _reason(of: Change) -> str:
    if of.action == "replace" and of.hands_over:
        return "replace_because_of_serving_change" if of.run_ends_at is None else "replace_because_run_ends"
    if of.action == "replace":
        return "replace_by_request" if of.reason.name == "REQUESTED" else "replace_because_cannot_update"
    return _REASONS.get((of.action, of.reason.name), "")
