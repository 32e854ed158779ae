"""The lock held, the state in hand, every save compare-and-swapped. Held for a step, never for a wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tpudeploy.domain.state import State
from tpudeploy.ports import World


class Session:
    """One deployment's state while its lock is held."""

    def __init__(self, world: World, state: State, version: str) -> None:
        self._world = world
        self._version = version
        self.state = state

    def save(self, state: State) -> None:
        """Write `state` with the next serial. Raise `errors.StateConflict` if somebody wrote in between."""
        state = replace(state, serial=self.state.serial + 1)
        self._version = self._world.state.write(state.deployment, state, over=self._version)
        self.state = state


@contextmanager
def session(world: World, name: str, operation: str) -> Iterator[Session]:
    """Lock and read; unlock at the end, whatever happens. Raise `errors.StateLocked` at once if it is held."""
    lease = world.state.lock(name, operation)
    try:
        snapshot = world.state.read(name)
        fresh = State(deployment=name, lineage=world.mint())
        yield Session(world, snapshot.state or fresh, snapshot.version)
    finally:
        world.state.unlock(lease)
