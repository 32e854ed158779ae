"""Build JSON Schemas (draft 7) from dataclasses and from explicit keys, so that they match what is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from inspect import getdoc
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.availability import Pair, ZoneTable
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.ending import PastEnd
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.orphans import Orphan, Orphans
from tpudeploy.domain.plan import Change, Goal, Plan, RouterPlan, ScalePlan, SliceDrift
from tpudeploy.domain.report import RunReport, Summary
from tpudeploy.domain.request_table import PlaceStatus
from tpudeploy.domain.state import State, StateWriter
from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus

Schema: TypeAlias = dict[str, Any]
DIALECT = "http://json-schema.org/draft-07/schema#"

TEXT, NUMBER, TRUTH, WHOLE, _NULL = ({"type": t} for t in ("string", "number", "boolean", "integer", "null"))
ANYTHING: Schema = {}
TEXTS: Schema = {"type": "array", "items": TEXT}
_PLAIN: Mapping[Any, Schema] = {str: TEXT, float: NUMBER, bool: TRUTH, int: WHOLE, NoneType: _NULL}
_RESOURCE = ("address", "mode", "type", "name", "index")
_SIZE = {"description": "What `size --json` prints for it; null if it is to be removed.", "type": ["object", "null"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class As:
    """Describes how a class's `to_dict` differs from its fields. `adds` holds schemas, or types that have a schema.

    A class of a feature that only adds keys names them itself, as ADDS.
    """

    adds: Mapping[str, Any]
    drops: frozenset[str] = frozenset()


def object_of(properties: Mapping[str, Schema], about: str = "", optional: Iterable[str] = ()) -> Schema:
    """Return the schema of an object with these keys, all of them required except the optional ones."""
    required = [name for name in properties if name not in set(optional)]
    described = {"description": about} if about else {}
    return {"type": "object", **described, "properties": dict(properties), "required": required}


def list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def mapping_of(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def any_of(choices: list[Schema]) -> Schema:
    """Return the schema of any of these. Schemas that are only a type are merged into one `type`."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def reference(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def document(
    title: str,
    keys: Mapping[str, Any],
    *,
    cls: type | None = None,
    optional: Iterable[str] = (),
    printed_as: Mapping[type, As] | None = None,
    choices: Iterable[Schema] = (),
) -> Schema:
    """Return the schema of a document: `cls.to_dict()` and these keys, whose values are schemas or types.

    `printed_as` says how further classes are printed here; `choices` are the alternative forms of a document.
    """
    definitions = Definitions(is_output=True, printed_as=printed_as)
    if choices:
        whole: Schema = {"oneOf": list(choices)}
    elif cls is None:
        whole = object_of({name: definitions.schema(cls) for name, cls in keys.items()}, optional=optional)
    else:
        whole = definitions.schemas.pop(definitions.add(cls, keys))
    return {"$schema": DIALECT, "title": title, **whole, "definitions": definitions.schemas}


def _rows(*keys: str) -> Schema:
    """Return rows as in Terraform's format 1.2, which describes their contents. See domain/policy.py."""
    return {"type": "array", "items": {"type": "object", "required": list(keys)}}


def _result(kind: str, *drops: str, **adds: Any) -> As:
    head = {"format": {"const": f"tpudeploy.{kind}/1"}, "type": {"const": kind}}
    return As(adds={**head, **adds}, drops=frozenset(drops))


PRINTED_AS: Mapping[type, As] = {
    Change: As(adds={"address": TEXT}, drops=frozenset({"before", "after"})),
    SliceDrift: As(adds={"address": TEXT}, drops=frozenset({"before"})),
    Goal: As(
        adds={"size": _SIZE, "router": RouterPlan | None},
        drops=frozenset({"deployment", "seen", "begun", "approval", "errors", "notify"}),
    ),
    Plan: _result(
        "plan",
        *("made_at", "backend", "source"),
        fingerprint=TEXT,
        ceiling=Ceiling,
        **dict.fromkeys(("is_empty", "applyable", "complete", "errored"), TRUTH),
        resource_changes=_rows(*_RESOURCE, "action_reason", "change"),
        resource_drift=_rows(*_RESOURCE, "kind", "detail", "change"),
        checks=_rows("address", "status", "instances", "problems"),
    ),
    RunReport: _result("report", "unchanged", deployments=tuple[Summary, ...]),
    Orphans: _result("gc"),
    Orphan: As(
        adds={
            **dict.fromkeys(("address", "name", "project", "zone", "lineage"), TEXT),
            **dict.fromkeys(("accelerator_type", "provisioning", "state"), TEXT),
            "kind": {"enum": [*Backend, "node"]},
            "is_signed": TRUTH,
        },
        drops=frozenset({"resource"}),
    ),
    TpudeployError: As(adds={"code": TEXT, "exit_code": WHOLE, "message": TEXT, "hint": TEXT}),
}


# Keys that a later version added to the same format. A document of an earlier version is valid without them. Results
# and the classes of features name their own, as ADDED_LATER.
_ADDED_LATER: Mapping[type, frozenset[str]] = {
    Change: frozenset(
        {
            "ceiling",
            "places",
            "replicas_serving",
            "drain_seconds_most",
            "waits",
            "sees_all_requests",
            "slices_at_first",
        }
    ),
    Goal: frozenset({"router", "scale", "starts", "forgets"}),
    Plan: frozenset({"ceiling"}),
    ScalePlan: frozenset({"ceiling", "ceiling_of_additions"}),
    Orphans: frozenset({"not_searched"}),
    Pair: frozenset({"backend"}),
    PlaceStatus: frozenset({"backend", "usd_per_hour", "billed_since", "stage", "serving"}),
    ReplicaStatus: frozenset({"backend", "load", "waits", "model"}),
    DeploymentStatus: frozenset({"ceiling", "scale", "late", "ends_in", "ends_by", "ended", "unended"}),
    PastEnd: frozenset({"cause"}),
    StateWriter: frozenset({"version"}),
    State: frozenset({"replicas", "scaled", "start", "forgotten", "serving_since", "used_at", "started_at", "ended"}),
    ZoneTable: frozenset({"readings_by_api"}),
}

# A list of runs counts the cells of each run instead of listing them.
CELLS_COUNTED = As(adds={"cells": WHOLE}, drops=frozenset({"cells"}))


class Definitions:
    """Collects the schemas of classes by name. With `is_output`, every field is always written."""

    def __init__(self, *, is_output: bool, printed_as: Mapping[type, As] | None = None) -> None:
        self.schemas: dict[str, Schema] = {}
        self._is_output = is_output
        self._printed_as = {**(PRINTED_AS if is_output else {}), **(printed_as or {})}

    def add(self, cls: type, adds: Mapping[str, Any] | None = None) -> str:
        """Add the schema of a class, unless it is there already, and return its name."""
        name = cls.__name__
        if name not in self.schemas:
            self.schemas[name] = {}  # a class that refers to itself is visited again before its schema is complete
            self.schemas[name] = self._class(cls, adds or {})
        return name

    def list_of(self, cls: type) -> Schema:
        return list_of(reference(self.add(cls)))

    def _class(self, cls: type, adds: Mapping[str, Any]) -> Schema:
        printed = self._printed_as.get(cls) or As(adds=getattr(cls, "ADDS", {}))
        printed_fields = (
            [f for f in fields(cls) if not (f.name in printed.drops or f.metadata)] if is_dataclass(cls) else []
        )
        hints = get_type_hints(cls, include_extras=True) if printed_fields else {}
        field_schemas = {f.name: self.schema(hints[f.name]) for f in printed_fields}
        optional = {*_ADDED_LATER.get(cls, ()), *getattr(cls, "ADDED_LATER", ())}
        if not self._is_output:
            optional |= {f.name for f in printed_fields if _has_default(f)}
        added = {name: self.schema(hint) for name, hint in printed.adds.items()}
        extra = {name: self.schema(hint) for name, hint in adds.items()}
        return object_of({**extra, **added, **field_schemas}, _summary(cls), optional)

    def schema(self, hint: Any) -> Schema:
        """Return the schema of a type. A schema is returned unchanged; a list holds the keys of its items."""
        if isinstance(hint, dict):
            return hint
        if isinstance(hint, list):
            return list_of(object_of({name: self.schema(item) for name, item in hint[0].items()}))
        if hint in _PLAIN:
            return _PLAIN[hint]
        if hint is Any:
            return ANYTHING
        if get_origin(hint) is Annotated:
            hint, about = get_args(hint)  # or a mark that says how it is read
            return {**self.schema(hint), **({"description": about} if isinstance(about, str) else {})}
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


def _summary(cls: type) -> str:
    """Return the first paragraph of a class's docstring on one line."""
    first, _, _ = (getdoc(cls) or "").partition("\n\n")
    return " ".join(first.split())


def _has_default(spec: Field[Any]) -> bool:
    return spec.default is not MISSING or spec.default_factory is not MISSING
