"""Events and results as one JSON line each.

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
from tpudeploy.domain.garbage import Garbage
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import Report
from tpudeploy.domain.tree import tree
from tpudeploy.version import VERSION as TPUDEPLOY
from tpudeploy.views import events
from tpudeploy.views.paint import Paint

FORMAT = "tpudeploy.events/1"
ERROR = "tpudeploy.error/1"
VERSION = 1


def first() -> str:
    """The line that every stream begins with."""
    return json.dumps({"v": VERSION, "type": "version", "format": FORMAT, "tpudeploy": TPUDEPLOY})


def line(event: Event) -> str:
    text = events.line(event, Paint())
    facts = {"type": kind(type(event)), "line": text, **asdict(event)}
    return json.dumps({"v": VERSION, **facts}, ensure_ascii=False)


def kind(of: type[Event]) -> str:
    """`PhaseChanged` is `phase_changed`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", of.__name__).lower()


def error(of: TpudeployError) -> str:
    """The last line of a stream that something stopped."""
    return json.dumps({"v": VERSION, **error_tree(of)}, ensure_ascii=False)


def error_document(of: TpudeployError) -> str:
    """The document of a command that something stopped."""
    return json.dumps(error_tree(of), ensure_ascii=False)


def error_tree(of: TpudeployError) -> dict[str, object]:
    """An error for programs. Every problem of the profiles is in `diagnostics`."""
    diagnostics = of.diagnostics if isinstance(of, ConfigError) else ()
    return {"format": ERROR, "type": "error", **of.to_dict(), "diagnostics": tree(diagnostics)}


def document(of: Mapping[str, object]) -> str:
    """A document as a line of a stream. It has a `type`, as every line has."""
    return json.dumps({"v": VERSION, **of}, ensure_ascii=False)


def result(of: Plan | Report | Garbage) -> str:
    return json.dumps(of.to_dict(), ensure_ascii=False)
