"""The lock held, the state in hand, every save compare-and-swapped. Held for a step, never for a wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf

from tpudeploy.domain import errors, events
from tpudeploy.domain.lock import Lease
from tpudeploy.domain.state import State, Written
from tpudeploy.engine.contention import tell_holder, tell_takeover
from tpudeploy.ports import World

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 16.0  # seconds, as Terraform waits for a lock
_SHARE = 1 / 12  # of the grace, that the saving of an intent may take
_FRESH = 5.0  # seconds; a proof of the lock that is older is made again before Google is asked for anything
# Seconds from a proof to the request that rests on it. A lock is taken over after far more, and what was asked for
# within half the grace of its intent still shows within the grace.
_LATEST = 60.0
_FENCES = 8  # writes of dead runs that may arrive one after the other


class Session:
    """One deployment's state while its lock is held."""

    def __init__(self, world: World, state: State, version: str, operation: str, lease: Lease) -> None:
        self._world = world
        self._version = version
        self._operation = operation
        self._lease = lease
        self._proven_at = -inf
        self.state = state

    def save(self, state: State) -> None:
        """Write `state` with the next serial. Raise `errors.StateConflict` if somebody wrote in between.

        An intent says when it was written, and what does not show for the grace from then on was never asked for. So
        one that took long to be saved is not acted on: raise `errors.Fault`, and the next look decides.
        """
        known, began = {a.name for a in self.state.attempts}, self._world.clock.now()
        state = replace(
            state,
            serial=max(self.state.serial, state.serial) + 1,
            written=Written(at=began, by=self._world.who, operation=self._operation),
        )
        self.put(state)
        took = self._world.clock.now() - began
        is_intent = any(attempt.name not in known for attempt in state.attempts)
        if is_intent and took > self._world.patience.grace * _SHARE:
            raise errors.Fault(f"The state of {state.deployment} took {took:.0f} s to be saved; nothing was asked for.")

    def put(self, state: State) -> None:
        """Write `state` as it is, its serial too. Raise `errors.StateConflict` if somebody wrote in between."""
        began = self._world.clock.now()
        try:
            self._version = self._world.state.write(state.deployment, state, over=self._version)
        except errors.StateConflict as conflict:
            raise self._explain(conflict) from conflict
        self._proven_at = began
        self.state = state

    def _explain(self, conflict: errors.StateConflict) -> errors.StateConflict:
        """Return `conflict`, or whose write it was: there was no state that `_fenced` could have written again."""
        expired = self._lease.expired
        if expired is None or not self.is_new:
            return conflict
        return errors.StateConflict(
            f"This run took over the lock of {self.state.deployment} from {expired.who} (process {expired.pid}), and"
            " the first state that the other run wrote arrived after that. This run asked for nothing.",
            hint="Run the command again: it continues from that state.",
        )

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A context for one request that changes something at Google: it is sent only by who holds the lock.

        A process may be stopped at any moment, for any time, and wake up when another run has taken its lock over. So
        the lock is proven before, and the time since is looked at when all that is left is to send.

        Raise `errors.StateConflict` where the lock is lost, `errors.Fault` where the proof is too old to rest on.
        """
        if self._world.clock.now() - self._proven_at > _FRESH:
            began = self._world.clock.now()
            self._world.state.prove(self._lease)
            self._proven_at = began
        with self._world.cloud.guarded(self._check_proof):
            yield

    def _check_proof(self) -> None:
        age = self._world.clock.now() - self._proven_at
        if age > _LATEST:
            raise errors.Fault(
                f"This run stood still for {age:.0f} s before it asked for something for {self.state.deployment};"
                " nothing was asked for."
            )

    def delete(self) -> None:
        """Leave no state. Raise `errors.StateConflict` if somebody wrote in between."""
        self._world.state.delete(self.state.deployment, over=self._version)
        self._version = ""

    @property
    def is_new(self) -> bool:
        """Whether there is no state yet, but the empty one in hand."""
        return not self._version


@contextmanager
def session(world: World, name: str, operation: str) -> Iterator[Session]:
    """Lock and read; unlock at the end, whatever happens.

    Raise `errors.StateLocked` if it is held, and is so still after `Patience.lock`.
    """
    lease = _lock(world, name, operation)
    try:
        opened = _open(world, name, operation, lease)
        if lease.expired is not None:
            opened = _fenced(world, opened, operation, lease)
        yield opened
    finally:
        world.state.unlock(lease)


def _open(world: World, name: str, operation: str, lease: Lease) -> Session:
    snapshot = world.state.read(name)
    fresh = State(deployment=name, lineage=world.mint())
    return Session(world, snapshot.state or fresh, snapshot.version, operation, lease)


def _fenced(world: World, opened: Session, operation: str, lease: Lease) -> Session:
    """Return a session whose state nobody from whom the lock was taken over writes any more.

    A write of theirs may still be on its way. It is for the version that they read, so writing the same state again
    ends it; where theirs was sooner, its outcome is what this run begins with. Where there is no state, there is no
    version to end: such a write is a conflict later, which says so. Raise `errors.StateConflict` if the lock is lost
    meanwhile.
    """
    for _ in range(_FENCES - 1):
        try:
            return _fence(opened)
        except errors.StateConflict:
            world.state.prove(lease)
            opened = _open(world, opened.state.deployment, operation, lease)
    return _fence(opened)


def _fence(opened: Session) -> Session:
    if not opened.is_new:
        opened.put(opened.state)
    return opened


def _lock(world: World, name: str, operation: str) -> Lease:
    """A lock that goes away while we look who holds it is free: it is asked for again, sooner than later."""
    ends, pause = world.clock.now() + world.patience.lock, _FIRST_PAUSE
    while True:
        try:
            lease = world.state.lock(name, operation)
        except errors.StateLocked as locked:
            left = ends - world.clock.now()
            if pause == _FIRST_PAUSE:
                tell_holder(world, name, locked)
            if left <= 0:
                raise
            seconds = min(pause, left)
            world.emit(events.LockWaiting(at=world.clock.now(), address=name, message=locked.message, seconds=seconds))
            world.clock.sleep(seconds)
            pause = min(pause * 2, _LONGEST_PAUSE)
        else:
            if lease.expired is not None:
                tell_takeover(world, name, lease.expired)
            return lease
