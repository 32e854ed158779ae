"""Format events and results as one JSON line each.

The first line of a stream names its version. An event is `{"v": 1, "type": …, "line": what a person reads, …facts}`; a
result is its `.to_dict()`, with a `format`. Versions grow by what is added; readers pass over keys they do not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict

from tpudeploy.domain.errors import ConfigError, TpudeployError
from tpudeploy.domain.events import Event
from tpudeploy.domain.orphans import Orphans
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import RunReport
from tpudeploy.domain.serialization import to_json
from tpudeploy.text.paint import Paint
from tpudeploy.version import VERSION as TPUDEPLOY
from tpudeploy.views import events

FORMAT = "tpudeploy.events/1"
ERROR = "tpudeploy.error/1"
VERSION = 1


def first() -> str:
    """Return the line that every stream begins with."""
    return json.dumps({"v": VERSION, "type": "version", "format": FORMAT, "tpudeploy": TPUDEPLOY})


def line(event: Event) -> str:
    text = events.line(event, Paint())
    facts = {"type": kind(type(event)), "line": text, **asdict(event)}
    return json.dumps({"v": VERSION, **facts}, ensure_ascii=False)


def kind(event_type: type[Event]) -> str:
    """Return the name of an event in a document: `PhaseChanged` is `phase_changed`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event_type.__name__).lower()


def error(failure: TpudeployError) -> str:
    """Return the last line of a stream that ended with an error."""
    return json.dumps({"v": VERSION, **error_tree(failure)}, ensure_ascii=False)


def error_document(failure: TpudeployError) -> str:
    """Return the document of a command that ended with an error."""
    return json.dumps(error_tree(failure), ensure_ascii=False)


def error_tree(failure: TpudeployError) -> dict[str, object]:
    """Return an error for programs. `diagnostics` holds every problem of the profiles."""
    diagnostics = failure.diagnostics if isinstance(failure, ConfigError) else ()
    return {"format": ERROR, "type": "error", **failure.to_dict(), "diagnostics": to_json(diagnostics)}


def document(document: Mapping[str, object]) -> str:
    """Return a document as a line of a stream. Like every line, it has a `type`."""
    return json.dumps({"v": VERSION, **document}, ensure_ascii=False)


def result(result: Plan | RunReport | Orphans) -> str:
    return json.dumps(result.to_dict(), ensure_ascii=False)
