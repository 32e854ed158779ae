"""Write and read states as `tpudeploy.state/2`. Other formats are refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tpudeploy.catalog.generations import FORMER_NAMES
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.ending import EndCause, PastEnd
from tpudeploy.domain.errors import StateTooNew, StateUnreadable
from tpudeploy.domain.life import STATES, Life
from tpudeploy.domain.names import DEPLOYMENT_NAME, ZONE, Zone
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import (
    Approval,
    Attempt,
    Boot,
    MetadataUpdate,
    NodeChange,
    Record,
    RefusalRecord,
    ScalingStep,
    State,
    StateWriter,
)

FORMAT = "tpudeploy.state/2"
_FORMAT_1 = "tpudeploy.state/1"
# The key that names the state of a life in JSON, and the names.
STATE_KEY = "state"
STATE_NAMES = {state: state.__name__.lower() for state in STATES}
_STATES = {name: state for state, name in STATE_NAMES.items()}
T = TypeVar("T")
# The fields of a state that are not written while they are empty: earlier versions can read such a state.
_OMITTED_IF_EMPTY = frozenset(
    {"replicas", "scaled", "start", "forgotten", "moved_to", "serving_since", "used_at", "started_at", "ended"}
)
# What becomes the name of a file, a resource or a part of a URL. Resources that were imported have names of their own.
_RESOURCE = re.compile(r"[a-z0-9]([-_.a-z0-9]{0,126}[a-z0-9])?")
_OPERATION = re.compile(r"[-_.:A-Za-z0-9]+(/[-_.:A-Za-z0-9]+)*")
_NAMES = {
    (State, "deployment"): DEPLOYMENT_NAME,
    (State, "lineage"): re.compile(r"[0-9a-z]{1,64}"),
    (State, "published"): _RESOURCE,
    (Record, "home"): ZONE,
    (Record, "lost"): _RESOURCE,
    (RefusalRecord, "zone"): ZONE,
    (Attempt, "name"): _RESOURCE,
    (Attempt, "project"): re.compile(r"[a-z0-9]([-.:a-z0-9]*[a-z0-9])?"),
    (Attempt, "zone"): ZONE,
    (Attempt, "operation"): _OPERATION,
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
        tree = json.loads(text)
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
        raise StateTooNew(
            f"{source} is written in the format `{file_format}`; this tpudeploy reads `{FORMAT}`.",
            hint="Use the version that wrote it, or a newer one. `tpudeploy version` shows how to upgrade.",
        )
    try:
        return _state(tree)
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise _unreadable(source, cause) from cause


def _fields(thing: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, and the name of a life's state. `asdict`, which copies, takes twice as long."""
    kind: Any = type(thing)
    state_name = {STATE_KEY: STATE_NAMES[kind]} if kind in STATE_NAMES else {}
    values = state_name | {name: getattr(thing, name) for name in _field_names(kind)}
    # Earlier versions of tpudeploy can read the state as long as it names one API alone.
    if isinstance(thing, RefusalRecord) and thing.backend is DEFAULT_BACKEND:
        del values["backend"]
    if isinstance(thing, RefusalRecord) and not thing.zones_available:
        del values["zones_available"]
    if isinstance(thing, State):
        values = {name: v for name, v in values.items() if v or name not in _OMITTED_IF_EMPTY}
        if not (thing.router.attempts or thing.router.refusals):
            del values["router"]
    return values


_encoder = json.JSONEncoder(default=_fields, ensure_ascii=False)  # `json.dumps` would make one for each field


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _unreadable(source: str, cause: Exception) -> StateUnreadable:
    return StateUnreadable(
        f"{source} cannot be read as a state ({type(cause).__name__}: {cause}).",
        hint="Restore a copy of it. Do not delete it: it holds the names of requests that may still be granted.",
    )


def _state(tree: dict[str, Any]) -> State:
    goal, writer, scaled = tree.pop("goal"), tree.pop("written", None), tree.pop("scaled", None)
    ended = tree.pop("ended", None)
    replicas = tuple(map(int, tree.pop("replicas", ())))
    records = tuple(map(_record, tree.pop("records")))
    forgotten = tuple(map(_attempt, tree.pop("forgotten", ())))
    if "router" in tree:
        tree["router"] = _record(tree["router"])
    state = _checked(
        State(
            goal=_checked(Approval(**goal)) if goal is not None else None,
            records=records,
            forgotten=forgotten,
            replicas=replicas,
            scaled=_checked(ScalingStep(**scaled)) if scaled is not None else None,
            ended=_past_end(ended) if ended is not None else None,
            written=_checked(StateWriter(**writer)) if writer is not None else None,
            **tree,
        )
    )
    _check_counts(state)
    return state


def _past_end(tree: dict[str, Any]) -> PastEnd:
    # Before it was a field, the cause was only in the text, in front of a colon.
    cause = tree.pop("cause", None) or tree["why"].partition(":")[0]
    return _checked(PastEnd(cause=EndCause(cause), **tree))


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


def _record(tree: Mapping[str, Any]) -> Record:
    return _checked(
        Record(
            index=tree["index"],
            attempts=tuple(map(_attempt, tree["attempts"])),
            refusals=tuple(_refused(r) for r in tree["refusals"]),
            home=Zone(tree["home"]) if tree.get("home") is not None else None,
            lost=tree.get("lost", ""),
        )
    )


def _refused(tree: Mapping[str, Any]) -> RefusalRecord:
    backend = Backend(tree.get("backend", DEFAULT_BACKEND))
    zones_available = tuple(map(Zone, tree.get("zones_available", ())))
    parts = {"scope": RefusalScope(tree["scope"]), "backend": backend, "zones_available": zones_available}
    return _checked(RefusalRecord(**_placed(tree) | parts))


def _attempt(tree: Mapping[str, Any]) -> Attempt:
    update, change = tree.get("update"), tree.get("change")
    parts = {
        "boot": _checked(Boot(**tree["boot"])),
        "life": _life(tree["life"]),
        "update": None if update is None else _checked(MetadataUpdate(**update)),
        "change": None if change is None else _checked(NodeChange(**change)),
    }
    return _checked(Attempt(**_placed(tree) | parts | {"spec": _with_current_type(tree["spec"])}))


def _with_current_type(spec: dict[str, Json]) -> dict[str, Json]:
    """Return the attributes of a slice, whose type an earlier version may have called otherwise."""
    name = spec.get("tpu.type")
    current = FORMER_NAMES.get(name) if isinstance(name, str) else None
    return spec if current is None else {**spec, "tpu.type": current}


def _life(tree: Mapping[str, Any]) -> Life:
    values = {key: value for key, value in tree.items() if key != STATE_KEY}
    if "before" in values:
        values["before"] = _life(values["before"])
    state: Any = _STATES[tree[STATE_KEY]]
    life: Life = _checked(state(**values))
    return life


def _checked(thing: T) -> T:
    """Return `thing`. Raise TypeError if a field has another type than its annotation: JSON has no types of ours.

    Raise ValueError if a name could not have been written by us: it may lead to another file or resource.
    """
    kind: Any = type(thing)
    for name, allowed in _field_types(kind):
        value = getattr(thing, name)
        if not isinstance(value, allowed):
            raise TypeError(f"{name} is {value!r}")
    for name, form in _forms(kind):
        value = getattr(thing, name)
        if value and (not form.fullmatch(value) or ".." in value):
            raise ValueError(f"{name} is {value!r}")
    return thing


@cache
def _forms(kind: Any) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, form) for (owner, name), form in _NAMES.items() if owner is kind)


@cache
def _field_types(kind: Any) -> tuple[tuple[str, tuple[type, ...]], ...]:
    """Return the types that each field may have. Evaluating annotations is slow, and states are read often."""
    return tuple((name, _allowed(hint)) for name, hint in get_type_hints(kind).items())


def _allowed(hint: Any) -> tuple[type, ...]:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    allowed = tuple(get_origin(k) or k for k in kinds)
    return (*allowed, int) if float in allowed else allowed


def _placed(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {**tree, "zone": Zone(tree["zone"]), "provisioning": Provisioning(tree["provisioning"])}
