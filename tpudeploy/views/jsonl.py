"""An event as one JSON line: `{"v": 1, "type": …, "line": what a person reads, …facts}`."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

from tpudeploy.domain.events import Event
from tpudeploy.views import events
from tpudeploy.views.paint import Paint

VERSION = 1


def line(event: Event) -> str:
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return json.dumps(
        {"v": VERSION, "type": kind, "line": events.line(event, Paint()), **asdict(event)}, ensure_ascii=False
    )
