"""Events and results as one JSON line each.

An event is `{"v": 1, "type": …, "line": what a person reads, …facts}`; a result is its `.to_dict()`, with a `format`.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict

from tpudeploy.domain.events import Event
from tpudeploy.domain.garbage import Garbage
from tpudeploy.domain.plan import Plan
from tpudeploy.domain.report import Report
from tpudeploy.views import events
from tpudeploy.views.paint import Paint

VERSION = 1


def line(event: Event) -> str:
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return json.dumps(
        {"v": VERSION, "type": kind, "line": events.line(event, Paint()), **asdict(event)}, ensure_ascii=False
    )


def result(of: Plan | Report | Garbage) -> str:
    return json.dumps(of.to_dict(), ensure_ascii=False)
