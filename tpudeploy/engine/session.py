"""The lock held, the state in hand, every save compare-and-swapped. Held for a step, never for a wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tpudeploy.domain import errors
from tpudeploy.domain.state import State, Written
from tpudeploy.ports import World

_SHARE = 1 / 12  # of the grace, that the saving of an intent may take


class Session:
    """One deployment's state while its lock is held."""

    def __init__(self, world: World, state: State, version: str, operation: str) -> None:
        self._world = world
        self._version = version
        self._operation = operation
        self.state = state

    def save(self, state: State) -> None:
        """Write `state` with the next serial. Raise `errors.StateConflict` if somebody wrote in between.

        An intent says when it was written, and what does not show for the grace from then on was never asked for. So
        one that took long to be saved is not acted on: raise `errors.Fault`, and the next look decides.
        """
        known, began = {a.name for a in self.state.attempts}, self._world.clock.now()
        state = replace(
            state,
            serial=self.state.serial + 1,
            written=Written(at=began, by=self._world.who, operation=self._operation),
        )
        self._version = self._world.state.write(state.deployment, state, over=self._version)
        self.state = state
        took = self._world.clock.now() - began
        is_intent = any(attempt.name not in known for attempt in state.attempts)
        if is_intent and took > self._world.patience.grace * _SHARE:
            raise errors.Fault(f"The state of {state.deployment} took {took:.0f} s to be saved; nothing was asked for.")


@contextmanager
def session(world: World, name: str, operation: str) -> Iterator[Session]:
    """Lock and read; unlock at the end, whatever happens. Raise `errors.StateLocked` at once if it is held."""
    lease = world.state.lock(name, operation)
    try:
        snapshot = world.state.read(name)
        fresh = State(deployment=name, lineage=world.mint())
        yield Session(world, snapshot.state or fresh, snapshot.version, operation)
    finally:
        world.state.unlock(lease)
