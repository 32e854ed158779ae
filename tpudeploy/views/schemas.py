"""The JSON Schemas of what we print and keep: draft 7, made from the dataclasses, so that they follow them.

Versions of a format grow by what is added: a reader passes over keys that it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from tpudeploy.core import pinfile, statefile
from tpudeploy.core.bench import runfile
from tpudeploy.domain import events
from tpudeploy.domain.benchmark import Run
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.garbage import Garbage, Stray
from tpudeploy.domain.plan import Change, Drift, Goal, Plan
from tpudeploy.domain.report import Report, Summary
from tpudeploy.domain.state import State
from tpudeploy.views import jsonl

Schema: TypeAlias = dict[str, Any]
_DIALECT = "http://json-schema.org/draft-07/schema#"

_TEXT, _NUMBER, _TRUTH, _WHOLE, _NULL = ({"type": t} for t in ("string", "number", "boolean", "integer", "null"))
_LIST_OF_TEXT: Schema = {"type": "array", "items": _TEXT}
_PLAIN: Mapping[Any, Schema] = {str: _TEXT, float: _NUMBER, bool: _TRUTH, int: _WHOLE, NoneType: _NULL}
_RESOURCE = ("address", "mode", "type", "name", "index")
_SIZE = {"description": "What `size --json` prints of it; null where it is to be removed.", "type": ["object", "null"]}


@frozen
class _Written:
    """How a class's own `to_dict` differs from its fields: `adds` are schemas, or types that have one."""

    adds: Mapping[str, Any]
    drops: frozenset[str] = frozenset()


def _rows(*keys: str) -> Schema:
    """As in Terraform's format 1.2, see domain/policy.py: what is in them is told by that format."""
    return {"type": "array", "items": {"type": "object", "required": list(keys)}}


def _result(kind: str, *drops: str, **adds: Any) -> _Written:
    head = {"format": {"const": f"tpudeploy.{kind}/1"}, "type": {"const": kind}}
    return _Written(adds={**head, **adds}, drops=frozenset(drops))


_WRITTEN: Mapping[type, _Written] = {
    Change: _Written(adds={"address": _TEXT}, drops=frozenset({"before", "after"})),
    Drift: _Written(adds={"address": _TEXT}, drops=frozenset({"before"})),
    Goal: _Written(adds={"size": _SIZE}, drops=frozenset({"deployment", "seen"})),
    Plan: _result(
        "plan",
        *("made_at", "backend", "source"),
        **dict.fromkeys(("is_empty", "applyable", "complete", "errored"), _TRUTH),
        resource_changes=_rows(*_RESOURCE, "action_reason", "change"),
        resource_drift=_rows(*_RESOURCE, "kind", "detail", "change"),
        checks=_rows("address", "status", "instances", "problems"),
    ),
    Report: _result("report", "unchanged", deployments=tuple[Summary, ...]),
    Garbage: _result("gc"),
    Stray: _Written(
        adds={
            **dict.fromkeys(("address", "name", "project", "zone", "lineage"), _TEXT),
            **dict.fromkeys(("accelerator_type", "provisioning", "state"), _TEXT),
            "kind": {"enum": ["queued-resource", "node"]},
            "is_signed": _TRUTH,
        },
        drops=frozenset({"found"}),
    ),
    TpudeployError: _Written(adds={"code": _TEXT, "exit_code": _WHOLE, "message": _TEXT, "hint": _TEXT}),
}


def plan() -> Schema:
    """Of the line that `plan --json` prints."""
    return _document("tpudeploy plan", Plan)


def state() -> Schema:
    """Of a state as it is kept. What older versions did not write may be absent."""
    return _document("tpudeploy state", State, adds={"format": {"const": statefile.FORMAT}}, is_output=False)


def run() -> Schema:
    """Of a benchmark's run as it is kept, and as `bench --json` prints it."""
    return _document("tpudeploy run", Run, adds={"format": {"const": runfile.FORMAT}, "hash": _TEXT})


def lock() -> Schema:
    """Of tpudeploy.lock.json. Each name is held to what its section holds."""
    held = {
        section: {
            "type": "object",
            "description": f"Each {kind} as a profile writes it, and {what}.",
            "additionalProperties": {"type": "string", "pattern": f"^{pattern}$"},
        }
        for section, kind, pattern, what in pinfile.SECTIONS
    }
    about = "What names that can move are pinned to. Keys that are not known stay as they are."
    written = _object({"format": {"const": pinfile.FORMAT}, **held}, about, optional=held)
    return {"$schema": _DIALECT, "title": "tpudeploy lock", **written}


def event_lines() -> Schema:
    """Of one line of `--json`: the version, which is the first, an event, or what it came to."""
    made = _Definitions(is_output=True)
    made.known["Version"] = _object(
        _line("version") | {"format": {"const": jsonl.FORMAT}, "tpudeploy": _TEXT},
        "The first line of every stream.",
    )
    for event in get_args(events.Event):
        made.add(event, _line(jsonl.kind(event)) | {"line": _TEXT})
    made.known["Error"] = _object(
        {**_line("error"), **_WRITTEN[TpudeployError].adds, "diagnostics": made.list_of(Diagnostic)},
        "The last line of a stream that something stopped.",
    )
    lines = ["Version", "Error", *(event.__name__ for event in get_args(events.Event))]
    lines += [made.add(result) for result in (Plan, Report, Garbage)]
    of = {"oneOf": [_reference(name) for name in lines]}
    return {"$schema": _DIALECT, "title": "tpudeploy events, one line", **of, "definitions": made.known}


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "plan": plan,
    "state": state,
    "events": event_lines,
    "lock": lock,
    "run": run,
}


def text(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False)


def _line(kind: str) -> dict[str, Schema]:
    return {"v": {"const": jsonl.VERSION}, "type": {"const": kind}}


def _document(title: str, of: type, *, adds: Mapping[str, Schema] | None = None, is_output: bool = True) -> Schema:
    made = _Definitions(is_output=is_output)
    whole = made.known.pop(made.add(of, adds or {}))
    return {"$schema": _DIALECT, "title": title, **whole, "definitions": made.known}


class _Definitions:
    """What was met so far, by class name. `is_output`: every field is always written."""

    def __init__(self, *, is_output: bool) -> None:
        self.known: dict[str, Schema] = {}
        self._is_output = is_output

    def add(self, of: type, adds: Mapping[str, Schema] | None = None) -> str:
        """Its name, once it is among them."""
        name = of.__name__
        if name not in self.known:
            self.known[name] = {}  # one that names itself is met again before it is whole
            self.known[name] = self._class(of, adds or {})
        return name

    def list_of(self, of: type) -> Schema:
        return {"type": "array", "items": _reference(self.add(of))}

    def _class(self, of: type, adds: Mapping[str, Schema]) -> Schema:
        written = _WRITTEN.get(of, _Written(adds={})) if self._is_output else _Written(adds={})
        shown = [f for f in fields(of) if f.name not in written.drops] if is_dataclass(of) else []
        hints = get_type_hints(of) if shown else {}
        own = {f.name: self._of(hints[f.name]) for f in shown}
        optional = () if self._is_output else [f.name for f in shown if _has_default(f)]
        more = {name: of if isinstance(of, dict) else self._of(of) for name, of in written.adds.items()}
        return _object({**adds, **more, **own}, _paragraph(of), optional)

    def _of(self, hint: Any) -> Schema:
        origin, arguments = get_origin(hint), get_args(hint)
        if hint in _PLAIN:
            return _PLAIN[hint]
        if origin in {Union, UnionType}:
            is_json = any(get_origin(each) is list for each in arguments)  # `Json` is the only such union
            return {} if is_json else _any_of([self._of(each) for each in arguments])
        if origin is tuple:
            return {"type": "array", "items": self._of(arguments[0])}
        if origin is not None:  # a mapping: keys of JSON are text
            return {"type": "object", "additionalProperties": self._of(arguments[1])}
        if isinstance(hint, type) and issubclass(hint, Enum):
            return {"enum": [member.value for member in hint]}
        if isinstance(hint, type) and issubclass(hint, str):
            return _TEXT
        if isinstance(hint, type):
            return _reference(self.add(hint))
        raise TypeError(f"no schema for {hint!r}")


def _object(properties: Mapping[str, Schema], about: str, optional: Iterable[str] = ()) -> Schema:
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "description": about, "properties": dict(properties), "required": required}


def _any_of(choices: list[Schema]) -> Schema:
    """Plain types side by side in one `type`."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _paragraph(of: type) -> str:
    """The first of its description, on one line."""
    first, _, _ = (getdoc(of) or "").partition("\n\n")
    return " ".join(first.split())


def _has_default(of: Field[Any]) -> bool:
    return of.default is not MISSING or of.default_factory is not MISSING
