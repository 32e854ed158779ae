"""The zone log ↔ its text: one JSON object a line, so that it only ever grows at its end."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone


def line(tried: HistoryEntry) -> str:
    """One line, its end included; whatever Google's text holds, it is on that line."""
    return json.dumps(asdict(tried), separators=(",", ":")) + "\n"


def read(text: str) -> tuple[HistoryEntry, ...]:
    """Every line that can be understood, oldest first.

    A line that cannot be is left out, not an error: a writer that was killed leaves one cut off, a newer version may
    write what this one does not know, and what is lost with it is one experience of many.
    """
    found = (_tried(one) for one in text.split("\n") if one.strip())
    return tuple(sorted((t for t in found if t is not None), key=lambda t: t.at))


def _tried(text: str) -> HistoryEntry | None:
    try:
        tree: Mapping[str, Any] = json.loads(text)
        tried = HistoryEntry(
            at=float(tree["at"]),
            zone=Zone.parse(tree["zone"]),
            provisioning=Provisioning(tree["provisioning"]),
            type=str(tree["type"]),
            chips=int(tree["chips"]),
            outcome=Ending(tree["outcome"]),
            waited=float(tree["waited"]),
            kind=str(tree.get("kind", "")),
            text=str(tree.get("text", "")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return tried if math.isfinite(tried.at) and math.isfinite(tried.waited) else None
