"""State ↔ JSON: the format `tpudeploy.state/1`. A later format is refused, never guessed at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.errors import StateTooNew, StateUnreadable
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Attempt, Goal, Record, Refused, State

FORMAT = "tpudeploy.state/1"


def dumps(state: State) -> str:
    return json.dumps({"format": FORMAT, **asdict(state)}, indent=2, ensure_ascii=False) + "\n"


def loads(text: str, *, source: str) -> State:
    """Raise `errors.StateUnreadable` or `errors.StateTooNew`; `source` names the file in the message."""
    try:
        tree = json.loads(text)
        written = tree.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError) as cause:
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


def _unreadable(source: str, cause: Exception) -> StateUnreadable:
    return StateUnreadable(
        f"{source} is not a state that we can read ({type(cause).__name__}: {cause}).",
        hint="Put back a copy of it. Do not delete it: it holds the names of requests that may still be granted.",
    )


def _state(tree: dict[str, Any]) -> State:
    goal = tree.pop("goal")
    records = tuple(_record(r) for r in tree.pop("records"))
    return State(goal=Goal(**goal) if goal is not None else None, records=records, **tree)


def _record(tree: Mapping[str, Any]) -> Record:
    return Record(
        index=tree["index"],
        attempts=tuple(Attempt(**_placed(a)) for a in tree["attempts"]),
        refusals=tuple(Refused(**_placed(r) | {"scope": Scope(r["scope"])}) for r in tree["refusals"]),
    )


def _placed(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {**tree, "zone": Zone(tree["zone"]), "provisioning": Provisioning(tree["provisioning"])}
