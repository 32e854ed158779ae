"""The ledger as text: one JSON object per line, so that a fact is only ever appended."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.ledger import LedgerEvent, LedgerLine
from tpudeploy.domain.names import Zone


def format_line(line: LedgerLine) -> str:
    """Return one line of ASCII with its end. What is empty or unknown is left out."""
    values = {each.name: getattr(line, each.name) for each in fields(line)}
    present_values = {key: value for key, value in values.items() if value is not False and value not in (None, "", {})}
    return json.dumps(present_values, separators=(",", ":")) + "\n"


def parse_lines(text: str) -> tuple[LedgerLine, ...]:
    """Return what every readable line says, oldest first.

    Any other line is left out: a killed writer leaves an incomplete one, and a newer version may write one that this
    version does not know.
    """
    lines = (_parse_line(line) for line in text.split("\n") if line)
    return tuple(sorted((line for line in lines if line is not None), key=lambda line: line.at))


def _parse_line(text: str) -> LedgerLine | None:
    try:
        tree: Mapping[str, Any] = json.loads(text)
        line = LedgerLine(
            at=float(tree["at"]),
            event=LedgerEvent(tree["event"]),
            deployment=str(tree["deployment"]),
            name=str(tree["name"]),
            zone=Zone.parse(tree["zone"]),
            provisioning=Provisioning(tree["provisioning"]),
            replica=int(tree.get("replica", 0)),
            project=str(tree.get("project", "")),
            backend=Backend(tree.get("backend", DEFAULT_BACKEND)),
            type=str(tree.get("type", "")),
            chips=int(tree.get("chips", 0)),
            model=str(tree.get("model", "")),
            labels={str(key): str(value) for key, value in dict(tree.get("labels", {})).items()},
            usd_per_hour=_number(tree, "usd_per_hour"),
            price_as_of=str(tree.get("price_as_of", "")),
            price_source=str(tree.get("price_source", "")),
            reason=str(tree.get("reason", "")),
            is_bound=tree.get("is_bound") is True,
            is_recorded=tree.get("is_recorded") is True,
            began=_number(tree, "began"),
            ended=_number(tree, "ended"),
            ends_at=_number(tree, "ends_at"),
            ends_by=_number(tree, "ends_by"),
            most_seconds=_number(tree, "most_seconds"),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return line if all(map(math.isfinite, _numbers(line))) else None


def _number(tree: Mapping[str, Any], name: str) -> float | None:
    value = tree.get(name)
    return None if value is None else float(value)


def _numbers(line: LedgerLine) -> Iterator[float]:
    values = (line.at, line.usd_per_hour, line.began, line.ended, line.ends_at, line.ends_by, line.most_seconds)
    return (value for value in values if value is not None)
