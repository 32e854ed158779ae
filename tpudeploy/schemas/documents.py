"""Define the JSON Schemas (draft 7) of what is printed and stored, but for the results of operations.

They are built from the dataclasses, so that they match. A version of a format only gains keys: readers ignore keys
that they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from tpudeploy.domain import events
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import RunReport
from tpudeploy.domain.state import State
from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.domain.stored import TAG
from tpudeploy.schemas.schema_of import (
    DIALECT,
    PRINTED_AS,
    TEXT,
    TEXTS,
    As,
    Definitions,
    Schema,
    document,
    mapping_of,
    object_of,
    reference,
)
from tpudeploy.serialization import pinfile, statefile
from tpudeploy.views import jsonl

_ERROR = PRINTED_AS[TpudeployError].adds


def formatted(kind: str, keys: Mapping[str, Any] | None = None, **more: Any) -> Callable[[], Schema]:
    """Return the function that makes the schema of a document with this name in its `format`."""
    head = {"format": {"const": f"tpudeploy.{kind}/1"}}
    return lambda: document(f"tpudeploy {kind}", {**head, **(keys or {})}, **more)


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "error": formatted("error", {"type": {"const": "error"}, **_ERROR, "diagnostics": tuple[Diagnostic, ...]}),
    "profiles": formatted("profiles", {"profiles": TEXTS}),
    "completion": formatted("completion", {"shell": TEXT, "script": TEXT}),
    "router": formatted("router", {"name": TEXT, "restarts": int}),
    "emulator": formatted("emulator", {"environment": mapping_of(TEXT)}),
}


def plan() -> Schema:
    """Return the schema of the document that `plan --json` prints."""
    return whole_document("tpudeploy plan", Plan)


def state() -> Schema:
    """Return the schema of a stored state. Keys that older versions did not write may be absent."""
    states = {state: As(adds={TAG: {"const": name}}) for state, name in statefile.STATE_NAMES.items()}
    adds = {"format": {"const": statefile.FORMAT}}
    return whole_document("tpudeploy state", State, adds=adds, is_output=False, printed_as=states)


def lock() -> Schema:
    """Return the schema of tpudeploy.lock.json. Each section pins names to values."""
    sections = {
        section: {
            "type": "object",
            "description": f"Each {kind.replace('_', ' ')} by its movable name, and {meaning}.",
            "additionalProperties": {"type": "string", "pattern": f"^{pattern}$"},
        }
        for section, kind, pattern, meaning in pinfile.SECTIONS
    }
    about = "The values that movable names are pinned to. Unknown keys are kept unchanged."
    schema = object_of({"format": {"const": pinfile.FORMAT}, **sections}, about, optional=sections)
    return {"$schema": DIALECT, "title": "tpudeploy lock", **schema}


def event_lines() -> Schema:
    """Return the schema of one line of a stream: the version on the first line, an event, or the result."""
    definitions = Definitions(is_output=True)
    definitions.schemas["Version"] = object_of(
        _line("version") | {"format": {"const": jsonl.FORMAT}, "tpudeploy": TEXT},
        "The first line of every stream.",
    )
    for event in get_args(events.Event):
        definitions.add(event, _line(jsonl.kind(event)) | {"line": TEXT})
    definitions.schemas["Error"] = object_of(
        {**_line("error"), "format": {"const": jsonl.ERROR}, **_ERROR, "diagnostics": definitions.list_of(Diagnostic)},
        "The last line of a stream that ended with an error.",
    )
    lines = ["Version", "Error", *(event.__name__ for event in get_args(events.Event))]
    definitions.schemas["Status"] = object_of(
        {
            **_line("status"),
            "format": {"const": "tpudeploy.status/1"},
            "emulated": {"type": "boolean"},
            "deployments": definitions.list_of(DeploymentStatus),
            "details": {"type": "array"},
            "timelines": {"type": "array"},
        },
        "The status, which `status --watch` prints whenever it changes. --details and --timeline extend the last one.",
        optional=("details", "timelines"),
    )
    definitions.schemas["LogLine"] = object_of(
        {**_line("log_line"), "log": TEXT, "line": TEXT}, "A line of `logs --follow`."
    )
    lines += ["Status", "LogLine", *(definitions.add(result) for result in (Plan, RunReport))]
    one_of = {"oneOf": [reference(name) for name in lines]}
    return {"$schema": DIALECT, "title": "tpudeploy events, one line", **one_of, "definitions": definitions.schemas}


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "plan": plan,
    "state": state,
    "events": event_lines,
    "lock": lock,
    **DOCUMENTS,
}


def _line(kind: str) -> dict[str, Schema]:
    return {"v": {"const": jsonl.VERSION}, "type": {"const": kind}}


def whole_document(
    title: str,
    cls: type,
    *,
    adds: Mapping[str, Any] | None = None,
    is_output: bool = True,
    printed_as: Mapping[type, As] | None = None,
) -> Schema:
    definitions = Definitions(is_output=is_output, printed_as=printed_as)
    whole = definitions.schemas.pop(definitions.add(cls, adds or {}))
    return {"$schema": DIALECT, "title": title, **whole, "definitions": definitions.schemas}
