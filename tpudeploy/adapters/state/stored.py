"""A state as it was found, wherever it lies: read as the deployment's own, or refused; never guessed at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from tpudeploy.core import statefile
from tpudeploy.domain import errors
from tpudeploy.domain.state import State


def loads(content: bytes, name: str, *, source: str) -> State:
    """The state of `name`. Raise `errors.StateUnreadable` or `errors.StateTooNew`; `source` names the place."""
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


def understood(contents: Iterable[bytes], name: str) -> Iterator[State]:
    """Earlier states of `name`. One that cannot be read is left out: it is no longer what anything goes by."""
    for content in contents:
        with suppress(errors.StateError):
            yield loads(content, name, source=name)


def conflict(name: str, version: str) -> errors.StateConflict:
    """Somebody else wrote: the state is at `version` now, "" for none."""
    return errors.StateConflict(
        f"The state of {name} changed while we worked on it (it is now at {version or 'nothing'}).",
        hint="Run the command again.",
    )
