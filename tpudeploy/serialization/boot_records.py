"""Verified boots as text: one JSON object per line, so that a new one is only ever appended."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tpudeploy.domain.boots import BootRecord

_TEXTS = ("engine", "release", "digest", "model", "accelerator_type")
_MOST_TEXT = 200


def format_record(record: BootRecord) -> str:
    """Return one line of ASCII with its end."""
    tree = {name: value[:_MOST_TEXT] if isinstance(value, str) else value for name, value in asdict(record).items()}
    return json.dumps(tree, separators=(",", ":")) + "\n"


def parse_records(text: str) -> tuple[BootRecord, ...]:
    """Return the boot of every line that can be read, oldest first. Any other line is left out, and is no error."""
    records = (_parse(line) for line in text.split("\n"))
    return tuple(sorted((record for record in records if record is not None), key=lambda record: record.at))


def _parse(line: str) -> BootRecord | None:
    try:
        tree: Mapping[str, Any] = json.loads(line)
        record = BootRecord(
            at=float(tree["at"]),
            predicted=_figures(tree["predicted"]),
            measured=_figures(tree["measured"]),
            phases=_figures(tree.get("phases", {})),
            **{name: str(tree[name]) for name in _TEXTS},
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return record if math.isfinite(record.at) else None


def _figures(tree: Mapping[str, Any]) -> Mapping[str, float]:
    figures = {str(name): float(value) for name, value in tree.items()}
    if not all(map(math.isfinite, figures.values())):
        raise ValueError("a figure is not finite")
    return figures
