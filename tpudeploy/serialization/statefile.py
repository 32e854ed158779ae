"""Write and read states as `tpudeploy.state/2`. Other formats are refused.

A newer version may add keys: they are kept and written back (`domain.stored.StoredValue`). What this version cannot
keep is refused, with the version that wrote it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from tpudeploy.catalog.generations import FORMER_NAMES
from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.errors import StateTooNew, StateUnreadable
from tpudeploy.domain.life import STATES
from tpudeploy.domain.state import RefusalRecord, State, StateWriter
from tpudeploy.domain.stored import TAG, StoredValue, tag
from tpudeploy.serialization.typed import read
from tpudeploy.version import VERSION

FORMAT = "tpudeploy.state/2"
_FORMAT_1 = "tpudeploy.state/1"
STATE_NAMES = {state: tag(state) for state in STATES}
# The fields that are not written while they are empty: earlier versions can read such a state.
_OMITTED_IF_EMPTY: Mapping[type, frozenset[str]] = {
    State: frozenset(
        {"replicas", "scaled", "start", "forgotten", "moved_to", "serving_since", "used_at", "started_at", "ended"}
    ),
    RefusalRecord: frozenset({"zones_available"}),
    StateWriter: frozenset({"version"}),
}


def dumps(state: State) -> str:
    """Return the text of a state, a line for each of its fields.

    A run writes its state at each step. With indentation the standard library encodes in Python, which takes 4.4 times
    as long: 0.16 ms of CPU instead of 0.04 for one slice.
    """
    tree = {"format": FORMAT, **_fields(state)}
    lines = (f'  "{key}": {_encoder.encode(value)}' for key, value in tree.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def loads(text: str, *, source: str) -> State:
    """Read a state. Raise `errors.StateUnreadable` or `errors.StateTooNew`, with `source` as the name of the file."""
    try:
        tree = json.loads(text, object_hook=_current)
        file_format = tree.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as cause:
        raise _unreadable(source, cause) from cause
    if file_format == _FORMAT_1:
        raise StateUnreadable(
            f"{source} cannot be read as a state: its format, `{_FORMAT_1}`, was that of early development versions.",
            hint="Move the file aside, keep it, and take each slice that it names into a new state with "
            "`tpudeploy import`.",
        )
    if file_format != FORMAT:
        raise _too_new(source, tree, f"in the format `{file_format}`; this tpudeploy reads `{FORMAT}`")
    try:
        state = read(State, tree)
        _check_counts(state)
    except (ValueError, RecursionError) as cause:
        if _is_newer(_version(tree)):
            raise _too_new(source, tree, f"and has what this version does not know ({cause})") from cause
        raise _unreadable(source, cause) from cause
    return state


def _too_new(source: str, tree: Any, why: str) -> StateTooNew:
    version = _version(tree)
    writer = f"by tpudeploy {version}; this is {VERSION}. It is written " if _is_newer(version) else ""
    return StateTooNew(
        f"{source} is written {writer}{why}.",
        hint="Use the version that wrote it, or a newer one. `tpudeploy version` shows how to upgrade.",
    )


def _version(tree: Any) -> str:
    writer = tree.get("written")
    return str(writer.get("version", "")) if isinstance(writer, dict) else ""


def _is_newer(version: str) -> bool:
    return _numbers(version) > _numbers(VERSION)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]{1,9}", version)[:3]))


def _current(values: dict[str, Any]) -> dict[str, Any]:
    """Return an object as this version writes it: an earlier one may have called the type of a slice otherwise."""
    name = values.get("tpu.type")
    if isinstance(name, str) and name in FORMER_NAMES:
        return {**values, "tpu.type": FORMER_NAMES[name]}
    if values.keys() >= {"why", "profile"} and "cause" not in values:
        # Before it was a field of an end, the cause was only in the text, in front of a colon.
        return {**values, "cause": str(values["why"]).partition(":")[0]}
    return values


def _fields(thing: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, and the name of a life's state. `asdict`, which copies, takes twice as long."""
    kind: Any = type(thing)
    state_name = {TAG: STATE_NAMES[kind]} if kind in STATE_NAMES else {}
    values = state_name | {name: getattr(thing, name) for name in _field_names(kind)}
    if isinstance(thing, StoredValue):
        values |= thing.more
    # Earlier versions of tpudeploy can read the state as long as it names one API alone.
    if isinstance(thing, RefusalRecord) and thing.backend is DEFAULT_BACKEND:
        del values["backend"]
    if isinstance(thing, State) and not (thing.router.attempts or thing.router.refusals):
        del values["router"]
    if kind in _OMITTED_IF_EMPTY:
        return {name: v for name, v in values.items() if v or name not in _OMITTED_IF_EMPTY[kind]}
    return values


_encoder = json.JSONEncoder(default=_fields, ensure_ascii=False)  # `json.dumps` would make one for each field


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if not field.metadata)


def _unreadable(source: str, cause: Exception) -> StateUnreadable:
    return StateUnreadable(
        f"{source} cannot be read as a state ({type(cause).__name__}: {cause}).",
        hint="Restore a copy of it. Do not delete it: it holds the names of requests that may still be granted.",
    )


def _check_counts(state: State) -> None:
    """Raise ValueError for what no run writes: a slice or a replica that is there twice, a count below 0."""
    for what, values in (
        ("slice", [attempt.name for record in state.all_records for attempt in record.attempts]),
        ("replica", [record.index for record in state.records]),
    ):
        twice = next((value for value, count in Counter(values).items() if count > 1), None)
        if twice is not None:
            raise ValueError(f"{what} {twice} is there twice")
    for name in ("serial", "next_attempt", "generation"):
        if getattr(state, name) < 0:
            raise ValueError(f"{name} is {getattr(state, name)}")
