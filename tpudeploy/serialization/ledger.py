"""The ledger as text: one JSON object per line, so that a fact is only ever appended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.ledger import (
    BackendMove,
    EndEvidence,
    Ledger,
    LedgerFact,
    MachineEnd,
    NewRequest,
    PricedRequest,
    Sighting,
    StateRemoval,
    StillRuns,
)
from tpudeploy.domain.names import Zone

_EVENTS: Mapping[str, type[LedgerFact]] = {
    "requested": NewRequest,
    "running": Sighting,
    "still-running": StillRuns,
    "gone": MachineEnd,
    "untracked": StateRemoval,
    "moved": BackendMove,
}
_NAMES = {fact: event for event, fact in _EVENTS.items()}
# What a number may be: beyond, the line is damaged.
_TIMES = (946_684_800.0, 32_503_680_000.0)  # 2000 to 3000
_LIMITS: Mapping[str, tuple[float, float]] = {
    "at": _TIMES,
    "began": _TIMES,
    "ended": _TIMES,
    "ends_at": _TIMES,
    "ends_by": _TIMES,
    "most_seconds": (0.0, 1e10),
    "usd_per_hour": (0.0, 1e7),
    "chips": (0, 1e6),
}


def format_line(fact: LedgerFact) -> str:
    """Return one line of ASCII with its end. What is empty or unknown is left out."""
    values = {"at": fact.at, "event": _NAMES[type(fact)]}
    parts = (fact.request, fact)
    values |= {each.name: getattr(part, each.name) for part in parts for each in fields(part) if each.name != "request"}
    evidence = values.pop("evidence", EndEvidence.DELETED)
    if evidence is not EndEvidence.DELETED:
        values[f"is_{evidence}"] = True
    present_values = {key: value for key, value in values.items() if value not in (None, "", {})}
    return json.dumps(present_values, separators=(",", ":")) + "\n"


def parse_lines(text: str) -> Ledger:
    """Return all facts, oldest first, and how many lines cannot be read: damaged, or of an unknown event.

    A killed writer leaves an incomplete last line, which doesn't count.
    """
    *lines, rest = text.split("\n")
    parsed = [_parse_line(line) for line in lines if line]
    facts = [fact for fact in (*parsed, _parse_line(rest)) if fact is not None]
    return Ledger(facts=tuple(sorted(facts, key=lambda fact: fact.at)), unreadable_lines=parsed.count(None))


def _parse_line(line: str) -> LedgerFact | None:
    try:
        tree: Mapping[str, Any] = json.loads(line)
        return _parse_fact(tree) if line.isascii() else None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _parse_fact(tree: Mapping[str, Any]) -> LedgerFact:
    kind = _EVENTS[tree["event"]]
    if kind is Sighting and tree.get("reason"):
        kind = StillRuns  # as earlier versions wrote it
    values: dict[str, Any] = {each.name: _number(tree, each.name) for each in fields(kind) if each.name in _LIMITS}
    if kind is MachineEnd:
        flags = {evidence: tree.get(f"is_{evidence}") is True for evidence in EndEvidence}
        values["evidence"] = next((evidence for evidence, is_set in flags.items() if is_set), EndEvidence.DELETED)
        values["reason"] = str(tree.get("reason", ""))
    if values["at"] is None:
        raise ValueError
    return kind(request=_parse_request(tree), **values)


def _parse_request(tree: Mapping[str, Any]) -> PricedRequest:
    return PricedRequest(
        deployment=str(tree["deployment"]),
        name=str(tree["name"]),
        zone=Zone.parse(tree["zone"]),
        provisioning=Provisioning(tree["provisioning"]),
        replica=int(tree.get("replica", 0)),
        project=str(tree.get("project", "")),
        backend=Backend(tree.get("backend", DEFAULT_BACKEND)),
        type=str(tree.get("type", "")),
        chips=int(_number(tree, "chips") or 0),
        model=str(tree.get("model", "")),
        labels={str(key): str(value) for key, value in dict(tree.get("labels", {})).items()},
        usd_per_hour=_number(tree, "usd_per_hour"),
        price_as_of=str(tree.get("price_as_of", "")),
        price_source=str(tree.get("price_source", "")),
    )


def _number(tree: Mapping[str, Any], name: str) -> float | None:
    """Return a number, or None where it is absent. Raise ValueError for an impossible one."""
    if tree.get(name) is None:
        return None
    value, (least, most) = float(tree[name]), _LIMITS[name]
    if not least <= value <= most:
        raise ValueError
    return value
