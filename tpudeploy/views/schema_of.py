"""JSON Schemas, draft 7, made from dataclasses and from keys by hand, so that they follow what is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from tpudeploy.core.accuracy.verdict import Verdict
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.garbage import Garbage, Stray
from tpudeploy.domain.plan import Change, Drift, Goal, Plan
from tpudeploy.domain.report import Report, Summary

Schema: TypeAlias = dict[str, Any]
DIALECT = "http://json-schema.org/draft-07/schema#"

TEXT, NUMBER, TRUTH, WHOLE, _NULL = ({"type": t} for t in ("string", "number", "boolean", "integer", "null"))
ANYTHING: Schema = {}
TEXTS: Schema = {"type": "array", "items": TEXT}
_PLAIN: Mapping[Any, Schema] = {str: TEXT, float: NUMBER, bool: TRUTH, int: WHOLE, NoneType: _NULL}
_RESOURCE = ("address", "mode", "type", "name", "index")
_SIZE = {"description": "What `size --json` prints of it; null where it is to be removed.", "type": ["object", "null"]}


@frozen
class As:
    """How a class's own `to_dict` differs from its fields: `adds` are schemas, or types that have one."""

    adds: Mapping[str, Any]
    drops: frozenset[str] = frozenset()


def object_of(properties: Mapping[str, Schema], about: str = "", optional: Iterable[str] = ()) -> Schema:
    """Return the schema of an object with these keys, all of them there but the optional ones."""
    required = [name for name in properties if name not in set(optional)]
    described = {"description": about} if about else {}
    return {"type": "object", **described, "properties": dict(properties), "required": required}


def list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def mapping_of(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def nullable(of: Schema) -> Schema:
    return any_of([of, _NULL])


def any_of(choices: list[Schema]) -> Schema:
    """Plain types side by side in one `type`."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def reference(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def document(
    title: str,
    keys: Mapping[str, Any],
    *,
    of: type | None = None,
    optional: Iterable[str] = (),
    written: Mapping[type, As] | None = None,
    choices: Iterable[Schema] = (),
) -> Schema:
    """Return the schema of a document that is `of.to_dict()` and these keys, whose values are schemas or types.

    `written` says of further classes how they are printed here; `choices` are the forms of a document of several.
    """
    definitions = Definitions(is_output=True, written=written)
    if choices:
        whole: Schema = {"oneOf": list(choices)}
    elif of is None:
        whole = object_of({name: definitions.schema(of) for name, of in keys.items()}, optional=optional)
    else:
        whole = definitions.known.pop(definitions.add(of, keys))
    return {"$schema": DIALECT, "title": title, **whole, "definitions": definitions.known}


def _rows(*keys: str) -> Schema:
    """As in Terraform's format 1.2, see domain/policy.py: what is in them is told by that format."""
    return {"type": "array", "items": {"type": "object", "required": list(keys)}}


def _result(kind: str, *drops: str, **adds: Any) -> As:
    head = {"format": {"const": f"tpudeploy.{kind}/1"}, "type": {"const": kind}}
    return As(adds={**head, **adds}, drops=frozenset(drops))


WRITTEN: Mapping[type, As] = {
    Change: As(adds={"address": TEXT}, drops=frozenset({"before", "after"})),
    Drift: As(adds={"address": TEXT}, drops=frozenset({"before"})),
    Goal: As(adds={"size": _SIZE}, drops=frozenset({"deployment", "seen", "begun", "approval", "errors"})),
    Plan: _result(
        "plan",
        *("made_at", "backend", "source"),
        fingerprint=TEXT,
        **dict.fromkeys(("is_empty", "applyable", "complete", "errored"), TRUTH),
        resource_changes=_rows(*_RESOURCE, "action_reason", "change"),
        resource_drift=_rows(*_RESOURCE, "kind", "detail", "change"),
        checks=_rows("address", "status", "instances", "problems"),
    ),
    Report: _result("report", "unchanged", deployments=tuple[Summary, ...]),
    Garbage: _result("gc"),
    Stray: As(
        adds={
            **dict.fromkeys(("address", "name", "project", "zone", "lineage"), TEXT),
            **dict.fromkeys(("accelerator_type", "provisioning", "state"), TEXT),
            "kind": {"enum": ["queued-resource", "node"]},
            "is_signed": TRUTH,
        },
        drops=frozenset({"found"}),
    ),
    Verdict: As(adds=dict.fromkeys(("questions", "before", "after", "changed"), NUMBER)),
    TpudeployError: As(adds={"code": TEXT, "exit_code": WHOLE, "message": TEXT, "hint": TEXT}),
}


class Definitions:
    """What was met so far, by class name. `is_output`: every field is always written."""

    def __init__(self, *, is_output: bool, written: Mapping[type, As] | None = None) -> None:
        self.known: dict[str, Schema] = {}
        self._is_output = is_output
        self._written = {**WRITTEN, **(written or {})} if is_output else {}

    def add(self, of: type, adds: Mapping[str, Any] | None = None) -> str:
        """Its name, once it is among them."""
        name = of.__name__
        if name not in self.known:
            self.known[name] = {}  # one that names itself is met again before it is whole
            self.known[name] = self._class(of, adds or {})
        return name

    def list_of(self, of: type) -> Schema:
        return list_of(reference(self.add(of)))

    def _class(self, of: type, adds: Mapping[str, Any]) -> Schema:
        written = self._written.get(of, As(adds={}))
        shown = [f for f in fields(of) if f.name not in written.drops] if is_dataclass(of) else []
        hints = get_type_hints(of) if shown else {}
        own = {f.name: self.schema(hints[f.name]) for f in shown}
        optional = () if self._is_output else [f.name for f in shown if _has_default(f)]
        more = {name: self.schema(of) for name, of in written.adds.items()}
        also = {name: self.schema(of) for name, of in adds.items()}
        return object_of({**also, **more, **own}, _paragraph(of), optional)

    def schema(self, hint: Any) -> Schema:
        """The schema of a type; of a schema, itself; of a list with the keys of an object, that of a list of such."""
        if isinstance(hint, dict):
            return hint
        if isinstance(hint, list):
            return list_of(object_of({name: self.schema(of) for name, of in hint[0].items()}))
        if hint in _PLAIN:
            return _PLAIN[hint]
        if get_origin(hint) is not None:
            return self._of_several(get_origin(hint), get_args(hint))
        if not isinstance(hint, type):
            raise TypeError(f"no schema for {hint!r}")
        if issubclass(hint, Enum):
            return {"enum": [member.value for member in hint]}
        return TEXT if issubclass(hint, str) else reference(self.add(hint))

    def _of_several(self, origin: Any, arguments: tuple[Any, ...]) -> Schema:
        if origin in {Union, UnionType}:
            is_json = any(get_origin(each) is list for each in arguments)  # `Json` is the only such union
            return {} if is_json else any_of([self.schema(each) for each in arguments])
        if origin is tuple:
            return {"type": "array", "items": self.schema(arguments[0])}
        return {"type": "object", "additionalProperties": self.schema(arguments[1])}  # keys of JSON are text


def _paragraph(of: type) -> str:
    """The first of its description, on one line."""
    first, _, _ = (getdoc(of) or "").partition("\n\n")
    return " ".join(first.split())


def _has_default(of: Field[Any]) -> bool:
    return of.default is not MISSING or of.default_factory is not MISSING
