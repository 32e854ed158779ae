"""State ↔ JSON: the format `tpudeploy.state/1`. A later format is refused, never guessed at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.errors import StateTooNew, StateUnreadable
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Attempt, Goal, Record, Refused, State, Written

FORMAT = "tpudeploy.state/1"
T = TypeVar("T")


def dumps(state: State) -> str:
    tree = {"format": FORMAT, **_fields(state)}
    return json.dumps(tree, default=_fields, indent=2, ensure_ascii=False) + "\n"


def loads(text: str, *, source: str) -> State:
    """Raise `errors.StateUnreadable` or `errors.StateTooNew`; `source` names the file in the message."""
    try:
        tree = json.loads(text)
        written = tree.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as cause:
        raise _unreadable(source, cause) from cause
    if written != FORMAT:
        raise StateTooNew(
            f"{source} is written in the format `{written}`; this tpudeploy reads `{FORMAT}`.",
            hint="Use the version of tpudeploy that wrote it, or a newer one.",
        )
    try:
        return _state(tree)
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable(source, cause) from cause


def _fields(thing: Any) -> dict[str, Any]:
    """Without the deep copies of `asdict`, half of the time to write."""
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


def _unreadable(source: str, cause: Exception) -> StateUnreadable:
    return StateUnreadable(
        f"{source} is not a state that we can read ({type(cause).__name__}: {cause}).",
        hint="Put back a copy of it. Do not delete it: it holds the names of requests that may still be granted.",
    )


def _state(tree: dict[str, Any]) -> State:
    goal = tree.pop("goal")
    written = tree.pop("written", None)
    records = tuple(_record(r) for r in tree.pop("records"))
    return _checked(
        State(
            goal=_checked(Goal(**goal)) if goal is not None else None,
            records=records,
            written=_checked(Written(**written)) if written is not None else None,
            **tree,
        )
    )


def _record(tree: Mapping[str, Any]) -> Record:
    return _checked(
        Record(
            index=tree["index"],
            attempts=tuple(_checked(Attempt(**_placed(a))) for a in tree["attempts"]),
            refusals=tuple(_checked(Refused(**_placed(r) | {"scope": Scope(r["scope"])})) for r in tree["refusals"]),
            home=Zone(tree["home"]) if tree.get("home") is not None else None,
            lost=tree.get("lost", ""),
        )
    )


def _checked(thing: T) -> T:
    """Itself. Raise TypeError where a field is not what its annotation says: JSON would let anything in."""
    of: Any = type(thing)
    for name, allowed in _kinds(of):
        value = getattr(thing, name)
        if not isinstance(value, allowed):
            raise TypeError(f"{name} is {value!r}")
    return thing


@cache
def _kinds(of: Any) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """What each field may be. Evaluating annotations is dear, and every look reads a state."""
    return tuple((name, _allowed(kind)) for name, kind in get_type_hints(of).items())


def _allowed(kind: Any) -> tuple[type, ...]:
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    allowed = tuple(get_origin(k) or k for k in kinds)
    return (*allowed, int) if float in allowed else allowed


def _placed(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {**tree, "zone": Zone(tree["zone"]), "provisioning": Provisioning(tree["provisioning"])}
