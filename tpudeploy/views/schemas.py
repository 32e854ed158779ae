"""The JSON Schemas of what we print and keep: draft 7, made from the dataclasses, so that they follow them.

Versions of a format grow by what is added: a reader passes over keys that it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from tpudeploy.core import pinfile, statefile
from tpudeploy.core.bench import runfile
from tpudeploy.domain import events
from tpudeploy.domain.benchmark import Run
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import Report
from tpudeploy.domain.state import State
from tpudeploy.domain.status import DeploymentStatus
from tpudeploy.views import jsonl
from tpudeploy.views.document_schemas import DOCUMENTS
from tpudeploy.views.schema_of import DIALECT, TEXT, WRITTEN, Definitions, Schema, object_of, reference


def plan() -> Schema:
    """Of the document that `plan --json` prints."""
    return _document("tpudeploy plan", Plan)


def state() -> Schema:
    """Of a state as it is kept. What older versions did not write may be absent."""
    return _document("tpudeploy state", State, adds={"format": {"const": statefile.FORMAT}}, is_output=False)


def run() -> Schema:
    """Of a benchmark's run as it is kept, and as `bench --json` prints it."""
    return _document("tpudeploy run", Run, adds={"format": {"const": runfile.FORMAT}, "hash": TEXT})


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
    written = object_of({"format": {"const": pinfile.FORMAT}, **held}, about, optional=held)
    return {"$schema": DIALECT, "title": "tpudeploy lock", **written}


_ERROR = WRITTEN[TpudeployError].adds


def event_lines() -> Schema:
    """Of one line of a stream: the version, which is the first, an event, or what it came to."""
    made = Definitions(is_output=True)
    made.known["Version"] = object_of(
        _line("version") | {"format": {"const": jsonl.FORMAT}, "tpudeploy": TEXT},
        "The first line of every stream.",
    )
    for event in get_args(events.Event):
        made.add(event, _line(jsonl.kind(event)) | {"line": TEXT})
    made.known["Error"] = object_of(
        {**_line("error"), "format": {"const": jsonl.ERROR}, **_ERROR, "diagnostics": made.list_of(Diagnostic)},
        "The last line of a stream that something stopped.",
    )
    lines = ["Version", "Error", *(event.__name__ for event in get_args(events.Event))]
    made.known["Status"] = object_of(
        {
            **_line("status"),
            "format": {"const": "tpudeploy.status/1"},
            "emulated": {"type": "boolean"},
            "deployments": made.list_of(DeploymentStatus),
            "details": {"type": "array"},
            "timelines": {"type": "array"},
        },
        "What `status --watch` sees whenever it changes. With --details or --timeline the last one has them too.",
        optional=("details", "timelines"),
    )
    made.known["LogLine"] = object_of({**_line("log_line"), "log": TEXT, "line": TEXT}, "A line of `logs --follow`.")
    lines += ["Status", "LogLine", *(made.add(result) for result in (Plan, Report))]
    of = {"oneOf": [reference(name) for name in lines]}
    return {"$schema": DIALECT, "title": "tpudeploy events, one line", **of, "definitions": made.known}


SCHEMAS: Mapping[str, Callable[[], Schema]] = {
    "plan": plan,
    "state": state,
    "events": event_lines,
    "lock": lock,
    "run": run,
    **DOCUMENTS,
}


def text(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False)


def _line(kind: str) -> dict[str, Schema]:
    return {"v": {"const": jsonl.VERSION}, "type": {"const": kind}}


def _document(title: str, of: type, *, adds: Mapping[str, Any] | None = None, is_output: bool = True) -> Schema:
    made = Definitions(is_output=is_output)
    whole = made.known.pop(made.add(of, adds or {}))
    return {"$schema": DIALECT, "title": title, **whole, "definitions": made.known}
