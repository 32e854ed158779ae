"""Parse stored states and endpoints, in any backend. A state of another deployment is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from tpudeploy.domain import errors
from tpudeploy.domain.state import State
from tpudeploy.ports import Snapshot
from tpudeploy.serialization import statefile


def load_state(content: bytes, name: str, *, source: str) -> State:
    """Return the state of `name`. Raise `errors.StateUnreadable` or `errors.StateTooNew`, which name `source`."""
    try:
        text = content.decode()
    except UnicodeDecodeError as cause:
        raise errors.StateUnreadable(f"{source} cannot be read: {cause}.") from cause
    state = statefile.loads(text, source=source)
    if state.deployment != name:
        raise errors.StateUnreadable(
            f"{source} is the state of {state.deployment}, not of {name}.",
            hint="Each deployment has a state of its own: move this one back to its name.",
        )
    return state


def without_marker(snapshot: Snapshot) -> Snapshot:
    """Return what was read. Raise `errors.StateElsewhere` for the marker of a state that was moved away."""
    if snapshot.state is not None and snapshot.state.moved_to:
        raise errors.StateElsewhere(snapshot.state, version=snapshot.version)
    return snapshot


def readable_states(contents: Iterable[bytes], name: str) -> Iterator[State]:
    """Yield the earlier states of `name`. An unreadable one is left out, because nothing depends on it any more."""
    for content in contents:
        with suppress(errors.StateError):
            yield load_state(content, name, source=name)


def conflict(name: str, version: str) -> errors.StateConflict:
    """Return the error for a state that another run wrote. It is at `version` now, or "" if it is absent."""
    return errors.StateConflict(
        f"The state of {name} changed while this run worked on it (it is now at {version or 'nothing'}).",
        hint="Run the command again.",
    )


def dump_endpoint(body: Mapping[str, object]) -> str:
    return json.dumps(body, indent=2) + "\n"


def load_endpoint(text: bytes, *, source: str) -> Mapping[str, object]:
    """Return the endpoint. Raise `errors.StateUnreadable`, which names `source`, if it has no `url` or another list.

    Documents of earlier versions have no `replicas`.
    """
    hint = "Run `tpudeploy apply` to write it again."
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise errors.StateUnreadable(f"{source} cannot be read: {cause}.", hint=hint) from cause
    if not isinstance(body, dict) or not isinstance(body.get("url"), str):
        raise errors.StateUnreadable(f"{source} names no endpoint.", hint=hint)
    replicas = body.get("replicas", [])
    if not isinstance(replicas, list) or not all(isinstance(row, dict) and _has_address(row) for row in replicas):
        raise errors.StateUnreadable(f"{source} has another form of replicas.", hint=hint)
    return body


def _has_address(row: Mapping[str, object]) -> bool:
    return isinstance(row.get("url"), str) and isinstance(row.get("slice"), str) and isinstance(row.get("replica"), int)
