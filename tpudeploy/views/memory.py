"""What a state remembers, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from tpudeploy.domain.address import Address
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.names import address
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.domain.tree import tree
from tpudeploy.views import words

_UNSET: tuple[object, ...] = (None, "", False, 0.0, {}, ())


def listed(states: Mapping[str, State], found: Iterable[Address]) -> dict[str, Any]:
    rows = ((each, states[each.deployment].record(each.replica or 0)) for each in found)
    known = [{"address": str(each), "slices": [a.name for a in record.attempts]} for each, record in rows]
    return {"format": "tpudeploy.state-list/1", "resources": known}


def shown(state: State, found: Iterable[Record]) -> str:
    """A block a slice: what it is, then what it was asked to be."""
    blocks = (block for record in found for block in _blocks(state.deployment, record))
    return "\n\n".join(blocks)


def shown_as_json(state: State, found: Iterable[Record]) -> dict[str, Any]:
    return {
        "format": "tpudeploy.state-show/1",
        "deployment": state.deployment,
        "lineage": state.lineage,
        "serial": state.serial,
        "resources": [{"address": address(state.deployment, r.index), **tree(r)} for r in found],
    }


def changed(verb: str, **facts: object) -> dict[str, Any]:
    """What a verb that changes the state has done."""
    return {"format": "tpudeploy.state-change/1", "type": verb, **facts}


def history(now: State | None, before: Sequence[State]) -> str:
    rows = [("SERIAL", "WRITTEN", "BY", "IN", "SLICES"), *(_row(s, is_now=s is now) for s in _all(now, before))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def history_as_json(name: str, now: State | None, before: Sequence[State]) -> dict[str, Any]:
    known = [
        {
            "serial": state.serial,
            "lineage": state.lineage,
            "is_current": state is now,
            "written": tree(state.written),
            "slices": [attempt.name for attempt in state.attempts],
        }
        for state in _all(now, before)
    ]
    return {"format": "tpudeploy.state-history/1", "deployment": name, "states": known}


def _all(now: State | None, before: Sequence[State]) -> list[State]:
    return [*([now] if now is not None else []), *before]


def _row(of: State, *, is_now: bool) -> tuple[str, ...]:
    names = ", ".join(attempt.name for attempt in of.attempts) or "none"
    told = ("unknown", "unknown", "unknown")
    if of.written is not None:
        told = (_moment(of.written.at), words.plain(of.written.by), words.plain(of.written.operation))
    return (f"{of.serial} now" if is_now else str(of.serial), *told, names)


def _blocks(deployment: str, record: Record) -> Iterator[str]:
    for attempt in record.attempts:
        yield "\n".join(_lines(address(deployment, record.index), attempt))


def _lines(where: str, of: Attempt) -> Iterator[str]:
    known = {f.name: getattr(of, f.name) for f in fields(of) if f.name not in {"name", "spec"}}
    facts = {key: _told(key, value) for key, value in known.items() if value not in _UNSET}
    spec = {path: _whole(value) for path, value in sorted(of.spec.items())}
    width = max(map(len, (*facts, *spec)))
    yield f"# {where}"
    yield f'slice "{of.name}" {{'
    yield from (f"    {key.ljust(width)} = {text}" for key, text in facts.items())
    yield ""
    yield from (f"    {path.ljust(width)} = {text}" for path, text in spec.items())
    yield "}"


def _told(key: str, value: Any) -> str:
    return f'"{_moment(value)}"' if key.endswith("_at") else _whole(value)


def _whole(value: Json) -> str:
    """However long: who asks for all that is remembered gets it."""
    return words.plain(json.dumps(value, ensure_ascii=False))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
