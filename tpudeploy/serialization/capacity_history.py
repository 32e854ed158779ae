"""The capacity history as text: one JSON object per line, so that a new entry is only ever appended."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from tpudeploy.domain.history import HistoryEntry
from tpudeploy.serialization.typed import read_lines

# The text of a longer line is cut off, so that what is read has a thousand entries, and that a line fits into the
# metadata of an object in a bucket: 8 KiB, where a character has up to 12 bytes.
_LONG_LINE_BYTES, _MOST_TEXT = 2000, 400


def format_entry(entry: HistoryEntry) -> str:
    """Return one line of ASCII with its end. JSON escapes every line break in Google's text."""
    line = _dump(entry)
    return line if len(line) <= _LONG_LINE_BYTES else _dump(replace(entry, text=entry.text[:_MOST_TEXT]))


def parse_entries(text: str) -> tuple[HistoryEntry, ...]:
    return read_lines(HistoryEntry, text)


def _dump(entry: HistoryEntry) -> str:
    return json.dumps(asdict(entry), separators=(",", ":")) + "\n"
