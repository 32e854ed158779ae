"""A plan in the form that policy tools read: the keys of Terraform's `show -json`, format 1.2.

The order of `actions` is the order of execution. Attributes are nested as in a profile, so that a rule can use
`change.after.tpu.type`. Our additional keys are ignored by readers of that format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.names import ROUTER, address

if TYPE_CHECKING:
    from tpudeploy.domain.plan import Change, SliceDrift

_TYPE = "tpudeploy_replica"
_ROUTER_TYPE = "tpudeploy_router"
_ACTIONS: Mapping[str, list[str]] = {
    "no-op": ["no-op"],
    "create": ["create"],
    "update": ["update"],
    "restart": ["update"],
    "destroy": ["delete"],
}
# The keys are names of enums in domain/plan.py.
_REASONS: Mapping[tuple[str, str], str] = {
    ("restart", "NONE"): "restart_because_of_serving_change",
    ("restart", "FAILED"): "restart_because_boot_failed",
    ("destroy", "SURPLUS"): "delete_because_count_index",
}


def resource_change(change: Change) -> dict[str, object]:
    """Return one row of `resource_changes`."""
    if change.action == "replace":
        actions = ["create", "delete"] if change.create_before_destroy else ["delete", "create"]
    else:
        actions = _ACTIONS[change.action]
    forces = [field.path.split(".") for field in change.fields if field.effect == "replace"]
    unknown = {"slice_name": True, "zone": True} if "create" in actions else {}
    return {
        **resource(change.deployment, change.replica),
        "action_reason": _reason(change),
        "change": {
            "actions": actions,
            "before": _side(change.before, change.slice_name, change.zone, change.usd_per_hour_before),
            "after": _side(change.after, "" if unknown else change.slice_name, change.zone, change.usd_per_hour_after),
            "after_unknown": unknown,
            "before_sensitive": {},
            "after_sensitive": {},
            "replace_paths": forces if change.action == "replace" else [],
        },
    }


_DRIFT_ACTIONS = {"deleted": "delete", "lost": "delete", "missing": "delete", "untracked": "create"}


def resource_drift(drift: SliceDrift) -> dict[str, object]:
    """Return one row of `resource_drift`, from the applied to the live attributes. `kind` is our own key."""
    action = _DRIFT_ACTIONS.get(drift.kind, "update")
    live = {**drift.before, **{field.path: field.live for field in drift.fields}}
    present = {path: value for path, value in live.items() if value is not None}
    applied = {**drift.before, **{f.path: f.applied for f in drift.fields if f.applied is not None}}
    return {
        **resource(drift.deployment, drift.replica),
        "kind": drift.kind,
        "detail": drift.detail,
        "change": {
            "actions": [action],
            "before": None if action == "create" else _side(applied, drift.slice_name, drift.zone),
            "after": None if action == "delete" else _side(present, drift.slice_name, drift.zone),
            "after_unknown": {},
            "before_sensitive": {},
            "after_sensitive": {},
        },
    }


def resource(deployment: str, replica: int) -> dict[str, object]:
    """Return the keys that every row begins with."""
    return {
        "address": address(deployment, replica),
        "mode": "managed",
        "type": _ROUTER_TYPE if replica == ROUTER else _TYPE,
        "name": deployment,
        "index": replica,
    }


def checks(diagnostics: Iterable[Diagnostic]) -> list[dict[str, object]]:
    """Return one row per code. A code with an error fails; one with warnings passes and lists them."""
    by_code: dict[str, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        by_code.setdefault(diagnostic.code, []).append(diagnostic)
    return [_check(code, rows) for code, rows in by_code.items()]


def _check(code: str, diagnostics: Sequence[Diagnostic]) -> dict[str, object]:
    has_error = any(each.severity is Severity.ERROR for each in diagnostics)
    return {
        "address": {"kind": "check", "name": code, "to_display": code},
        "status": "fail" if has_error else "pass",
        "instances": [],
        "problems": [{"message": d.message, "severity": d.severity, "hint": d.hint} for d in diagnostics],
    }


def nested(attributes: Mapping[str, Json]) -> dict[str, Any]:
    """Return `{"tpu.type": …}` as `{"tpu": {"type": …}}`. A path below a plain value is kept as it is."""
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
    """Return one side of a change, or None where it is absent, as Terraform has it."""
    if not attributes:
        return None
    slice_fields = {"slice_name": slice_name, "zone": zone} if slice_name else {}
    price = {} if usd is None else {"usd_per_hour": usd}
    return {**nested(attributes), **slice_fields, **price}


def _reason(change: Change) -> str:
    if change.action == "replace" and change.hands_over:
        return "replace_because_of_serving_change" if change.run_ends_at is None else "replace_because_run_ends"
    if change.action == "replace":
        return "replace_by_request" if change.reason.name == "REQUESTED" else "replace_because_cannot_update"
    return _REASONS.get((change.action, change.reason.name), "")
