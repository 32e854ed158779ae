"""The capacity history as text: one JSON object per line, so that a new entry is only ever appended."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.names import Zone

# The text of a longer line is cut off, so that what is read has a thousand entries, and that a line fits into the
# metadata of an object in a bucket: 8 KiB, where a character has up to 12 bytes.
_LONG_LINE_BYTES, _MOST_TEXT = 2000, 400


def format_entry(entry: HistoryEntry) -> str:
    """Return one line of ASCII with its end. JSON escapes every line break in Google's text."""
    line = _dump(entry)
    return line if len(line) <= _LONG_LINE_BYTES else _dump(replace(entry, text=entry.text[:_MOST_TEXT]))


def parse_entries(text: str) -> tuple[HistoryEntry, ...]:
    """Return the entry of every line that can be read, oldest first.

    Any other line is left out, and is no error: a killed writer leaves an incomplete line, and a newer version may
    write one that this version does not know. Only one result of many is missing then.
    """
    entries = (_parse_entry(line) for line in text.split("\n"))
    return tuple(sorted((entry for entry in entries if entry is not None), key=lambda entry: entry.at))


def _dump(entry: HistoryEntry) -> str:
    return json.dumps(asdict(entry), separators=(",", ":")) + "\n"


def _parse_entry(text: str) -> HistoryEntry | None:
    try:
        tree: Mapping[str, Any] = json.loads(text)
        entry = HistoryEntry(
            at=float(tree["at"]),
            zone=Zone.parse(tree["zone"]),
            provisioning=Provisioning(tree["provisioning"]),
            type=str(tree["type"]),
            chips=int(tree["chips"]),
            outcome=Ending(tree["outcome"]),
            waited=float(tree["waited"]),
            kind=str(tree.get("kind", "")),
            text=str(tree.get("text", "")),
            # Earlier versions requested queued resources alone, and wrote no API.
            backend=Backend(tree.get("backend", DEFAULT_BACKEND)),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return entry if math.isfinite(entry.at) and math.isfinite(entry.waited) else None
