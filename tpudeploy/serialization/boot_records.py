"""Verified boots as text: one JSON object per line, so that a new one is only ever appended."""

from __future__ import annotations

import json
from dataclasses import asdict

from tpudeploy.domain.boots import BootRecord
from tpudeploy.serialization.typed import read_lines

_MOST_TEXT = 200


def format_record(record: BootRecord) -> str:
    """Return one line of ASCII with its end."""
    tree = {name: value[:_MOST_TEXT] if isinstance(value, str) else value for name, value in asdict(record).items()}
    return json.dumps(tree, separators=(",", ":")) + "\n"


def parse_records(text: str) -> tuple[BootRecord, ...]:
    return read_lines(BootRecord, text)
