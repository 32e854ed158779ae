"""Define the JSON Schema of the part of a plan that policy tools read. See domain/policy.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_OPEN: Schema = {"type": "object"}
_SIDE: Schema = {
    "description": "All attributes, nested as in a profile, or null.",
    "type": ["object", "null"],
}


def _row(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


_CHANGE: Mapping[str, Schema] = {
    "actions": {"type": "array", "items": {"enum": ["no-op", "create", "update", "delete"]}},
    "before": _SIDE,
    "after": _SIDE,
    "after_unknown": _OPEN,
    "before_sensitive": _OPEN,
    "after_sensitive": _OPEN,
}
_PATHS: Schema = {"type": "array", "items": {"type": "array", "items": _TEXT}}
_RESOURCE: Mapping[str, Schema] = {
    "address": _TEXT,
    "mode": _TEXT,
    "type": _TEXT,
    "name": _TEXT,
    "index": {"type": "integer"},
}
_PROBLEM: Mapping[str, Schema] = {"message": _TEXT, "severity": {"enum": ["error", "warning"]}, "hint": _TEXT}
_CHECK: Mapping[str, Schema] = {
    "address": _row({"kind": {"const": "check"}, "name": _TEXT, "to_display": _TEXT}),
    "status": {"enum": ["pass", "fail"]},
    "instances": {"type": "array"},
    "problems": {"type": "array", "items": _row(_PROBLEM)},
}

ROWS: Mapping[str, Schema] = {
    "resource_changes": {
        "type": "array",
        "items": _row({**_RESOURCE, "action_reason": _TEXT, "change": _row({**_CHANGE, "replace_paths": _PATHS})}),
    },
    "resource_drift": {
        "type": "array",
        "items": _row({**_RESOURCE, "kind": _TEXT, "detail": _TEXT, "change": _row(_CHANGE)}),
    },
    "checks": {"type": "array", "items": _row(_CHECK)},
}
