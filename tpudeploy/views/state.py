"""Format states for people and for programs: as stored, as a history, and as the slices that were last applied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.names import address
from tpudeploy.domain.policy import nested, resource
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.serialization.attempt_row import attempt_row
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned

_OPTIONAL_COLUMNS = (3, 2)  # in what, and who: a narrow terminal has no room for them
_UNSET: tuple[object, ...] = (None, "", False, 0.0, {}, ())


def state_text(state: State, records: Iterable[Record]) -> str:
    """Return one block per slice: its facts, then the settings it was requested with."""
    rows = ((address(state.deployment, record.index), attempt) for record in records for attempt in record.attempts)
    return "\n\n".join("\n".join(_lines(where, attempt)) for where, attempt in rows)


def history(current: State | None, states: Sequence[State], *, width: int | None = None) -> str:
    """Return one row per state: who wrote it, when, in what, and its slices; less on a narrow terminal."""
    rows = [("SERIAL", "WRITTEN", "BY", "IN", "SLICES"), *(_row(s, is_now=s is current) for s in states)]
    return "\n".join(aligned(rows, room=width, optional=_OPTIONAL_COLUMNS))


def _row(state: State, *, is_now: bool) -> tuple[str, ...]:
    names = ", ".join(attempt.name for attempt in state.attempts) or "none"
    origin = ("unknown", "unknown", "unknown")
    if state.written is not None:
        origin = (_timestamp(state.written.at), words.plain(state.written.by), words.plain(state.written.operation))
    return (f"{state.serial} now" if is_now else str(state.serial), *origin, names)


def _lines(where: str, attempt: Attempt) -> Iterator[str]:
    row = attempt_row(attempt)
    values = {f.name: getattr(row, f.name) for f in fields(row) if f.name not in {"name", "spec"}}
    facts = {key: _formatted(key, value) for key, value in values.items() if value not in _UNSET}
    spec = {path: _formatted_json(value) for path, value in sorted(attempt.spec.items())}
    width = max(map(len, (*facts, *spec)))
    yield f"# {where}"
    yield f'slice "{attempt.name}" {{'
    yield from (f"    {key.ljust(width)} = {text}" for key, text in facts.items())
    yield ""
    yield from (f"    {path.ljust(width)} = {text}" for path, text in spec.items())
    yield "}"


def _formatted(key: str, value: Any) -> str:
    return f'"{_timestamp(value)}"' if key.endswith("_at") else _formatted_json(value)


def _formatted_json(value: Json) -> str:
    """Return the value as JSON without truncation, because the whole state was asked for."""
    return words.plain(json.dumps(value, ensure_ascii=False))


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def slices_text(states: Iterable[State], paint: Paint) -> str:
    blocks = ["\n".join(_slice(where, attempt, paint)) for _, where, attempt in _slices(states)]
    return "\n\n".join(blocks) or "The states here hold no slice."


def values(states: Iterable[State]) -> dict[str, object]:
    """Return the keys of the document that `show --json` prints: Terraform's `values`, with each state's lineage."""
    rows = list(states)
    return {
        "states": [{"deployment": s.deployment, "lineage": s.lineage, "serial": s.serial} for s in rows],
        "values": {"root_module": {"resources": [_resource(*row) for row in _slices(rows)]}},
    }


def _slices(states: Iterable[State]) -> Iterator[tuple[State, str, Attempt]]:
    for state in states:
        for record in state.all_records:
            yield from ((state, address(state.deployment, record.index), a) for a in record.attempts)


def _slice(where: str, attempt: Attempt, paint: Paint) -> Iterator[str]:
    yield f"# {paint.bold(where)} = {attempt.name} ({attempt.place}){_status(attempt)}"
    width = max(map(len, attempt.spec), default=0)
    yield from (f"    {path.ljust(width)} = {words.value(value)}" for path, value in sorted(attempt.spec.items()))


def _status(attempt: Attempt) -> str:
    if attempt.releasing_at is not None:
        return ", being released"
    return "" if attempt.granted_at is not None else ", not granted when last observed"


def _resource(state: State, where: str, attempt: Attempt) -> dict[str, object]:
    index = next(r.index for r in state.all_records if r.attempt(attempt.name) is not None)
    values = {**nested(attempt.spec), "slice_name": attempt.name, "zone": attempt.zone}
    return {**resource(state.deployment, index), "address": where, "values": values}
