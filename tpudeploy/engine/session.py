"""A session holds the lock of a deployment and its state. It lasts for a step, never for a wait.

Why: decision 5 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf

from tpudeploy.domain import errors, events
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.lock import BUDGETS, Lease, LockInfo
from tpudeploy.domain.state import State, StateWriter
from tpudeploy.engine.ledger import record_departures, record_requests
from tpudeploy.ports import StateBackend, World
from tpudeploy.version import VERSION

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 16.0  # seconds, as Terraform waits for a lock
_SAVE_SHARE = 1 / 12  # of the grace, that the save of an intent may take
_FRESH = 5.0  # seconds; an older proof of the lock is renewed before Google is asked for anything
# Seconds from a proof to the request that depends on it. A lock is taken over after far more, and what was requested
# within half the grace of its intent still appears within the grace.
_OLDEST_PROOF = 60.0
_FENCES = 8  # writes of dead runs that may arrive one after the other


class Purchase:
    """A request for a slice, of one call or several. `is_unsent`: an interrupt stopped it before the first one."""

    is_begun = False
    is_unsent = False


class StateSession:
    """One deployment's state while its lock is held. Every save is a compare-and-swap."""

    def __init__(self, world: World, state: State, version: str, operation: str, lease: Lease) -> None:
        self._world = world
        self._version = version
        self._operation = operation
        self._lease = lease
        self._proven_at = -inf
        self.state = state

    @property
    def is_new(self) -> bool:
        """Whether the state was never written: the one in hand is empty."""
        return not self._version

    def save(self, state: State) -> None:
        """Write `state` with the next serial. Raise `errors.StateConflict` if another run wrote in between.

        An intent has the time at which it was written, and a slice that does not appear within the grace after that was
        never requested. So an intent that took long to save is not acted on: raise `errors.Fault`, and the next
        observation decides.
        """
        earlier_names, began = {attempt.name for attempt in self.state.attempts}, self._world.clock.now()
        state = replace(
            state,
            serial=max(self.state.serial, state.serial) + 1,
            written=StateWriter(at=began, by=self._world.who, operation=self._operation, version=VERSION),
        )
        self.write(state)
        seconds = self._world.clock.now() - began
        is_intent = any(attempt.name not in earlier_names for attempt in state.attempts)
        if is_intent and seconds > self._world.patience.grace * _SAVE_SHARE:
            raise errors.Fault(
                f"The state of {state.deployment} took {seconds:.0f} s to save, so nothing was requested."
            )

    def write(self, state: State) -> None:
        """Write `state` with the serial that it has. Raise `errors.StateConflict` if another run wrote in between."""
        began, before = self._world.clock.now(), self.state
        record_departures(self._world, before, state, self._operation)
        try:
            self._version = self._world.state.write(state.deployment, state, over=self._version)
        except errors.StateConflict as conflict:
            expired = self._lease.expired
            # A state that `_fence` has written once more cannot be overwritten by the previous holder of the lock. A
            # state that did not exist then could not be fenced, so the error says whose write this is.
            if expired is None or not self.is_new:
                raise
            raise errors.StateConflict(
                f"This run took over the lock of {self.state.deployment} from {expired.who} (process {expired.pid}),"
                " and the first state that the other run wrote arrived after that. This run requested nothing.",
                hint="Run the command again: it continues from that state.",
            ) from conflict
        # A write succeeds only for the holder of the lock.
        self._proven_at = began
        self.state = state
        record_requests(self._world, before, state)

    def delete(self) -> None:
        """Delete the state. Raise `errors.StateConflict` if another run wrote in between."""
        record_departures(self._world, self.state, None, self._operation)
        self._world.state.delete(self.state.deployment, over=self._version)
        self._version = ""

    @contextmanager
    def asking(self, purchase: Purchase | None = None) -> Iterator[None]:
        """A context for one request that changes something at Google: only the holder of the lock may send it.

        An interrupted run sends no `purchase`, but completes a deletion or a change that it has begun.

        A process can be suspended at any moment, for any time, and wake up after another run has taken over its lock.
        So the lock is proven before, and the age of the proof is checked when nothing is left but to send.

        Raise `errors.StateConflict` if the lock is lost, `errors.Fault` if the proof is too old, `errors.Interrupted`.
        """
        if self._world.clock.now() - self._proven_at > _FRESH:
            began = self._world.clock.now()
            self._world.state.prove(self._lease)
            self._proven_at = began
        with self._world.cloud.guarded(self._check_proof if purchase is None else lambda: self._begin(purchase)):
            yield

    def _begin(self, purchase: Purchase) -> None:
        try:
            self._world.clock.sleep(0.0)  # raises in an interrupted run
        except errors.Interrupted:
            purchase.is_unsent = not purchase.is_begun
            raise
        self._check_proof()
        purchase.is_begun = True

    def _check_proof(self) -> None:
        age = self._world.clock.now() - self._proven_at
        if age > _OLDEST_PROOF:
            raise errors.Fault(
                f"This run was suspended for {age:.0f} s before it could send a request for {self.state.deployment},"
                " so it sent nothing."
            )


@contextmanager
def open_session(world: World, name: str, operation: str, *, takes_marker: bool = False) -> Iterator[StateSession]:
    """Lock and read the state of a deployment, and unlock it at the end, whatever happens.

    Raise `errors.StateLocked` if another run still holds the lock after `Patience.lock`, and `errors.StateElsewhere`
    for the marker of a state that was moved away, unless `takes_marker`.
    """
    lease = _lock(world, name, operation)
    try:
        session = _read(world, name, operation, lease, takes_marker=takes_marker)
        if lease.expired is not None:
            session = _fence(world, session, operation, lease)
        yield session
    finally:
        world.state.unlock(lease)


def _read(world: World, name: str, operation: str, lease: Lease, *, takes_marker: bool = False) -> StateSession:
    try:
        snapshot = world.state.read(name)
    except errors.StateElsewhere as elsewhere:
        if not takes_marker:
            raise
        return StateSession(world, elsewhere.marker, elsewhere.version, operation, lease)
    state = snapshot.state or State(deployment=name, lineage=world.mint())
    return StateSession(world, state, snapshot.version, operation, lease)


def _fence(world: World, session: StateSession, operation: str, lease: Lease) -> StateSession:
    """Return a session whose state the run from which the lock was taken over cannot write any more.

    A write of that run may still be on its way. It is for the version that the run read, so writing the same state once
    more makes it fail. If the write arrives before, this run begins with its result. Raise `errors.StateConflict` if
    the lock is lost meanwhile.
    """
    conflicts = 0
    # Without a state there is no version to make stale: the write conflicts later, which `StateSession.write` explains.
    while not session.is_new:
        try:
            session.write(session.state)
            break
        except errors.StateConflict:
            conflicts += 1
            if conflicts == _FENCES:
                raise
            world.state.prove(lease)
            session = _read(world, session.state.deployment, operation, lease)
    return session


def _lock(world: World, name: str, operation: str) -> Lease:
    """Return the lease of the lock. While another run holds it, wait with growing pauses."""
    deadline, pause = world.clock.now() + world.patience.lock, _FIRST_PAUSE
    while True:
        try:
            lease = world.state.lock(name, operation)
        except errors.StateLocked as error:
            seconds_left = deadline - world.clock.now()
            # The holder is reported once, and not at every try.
            if pause == _FIRST_PAUSE:
                _report_holder(world, name, error.holder)
            if seconds_left <= 0:
                raise
            seconds = min(pause, seconds_left)
            world.emit(events.LockWaiting(at=world.clock.now(), address=name, message=error.message, seconds=seconds))
            world.clock.sleep(seconds)
            pause = min(pause * 2, _LONGEST_PAUSE)
        else:
            if lease.expired is not None:
                _report_takeover(world, name, lease.expired)
            return lease


def _report_holder(world: World, name: str, holder: LockInfo | None) -> None:
    """Report who holds the lock of a deployment. A lock without that information is reported as held."""
    world.emit(
        events.LockHeld(
            at=world.clock.now(),
            address=name,
            id=holder.id if holder else "",
            operation=holder.operation if holder else "",
            who=holder.who if holder else "",
            host=holder.host if holder else "",
            pid=holder.pid if holder else None,
            created=holder.created if holder else None,
            heartbeat=holder.heartbeat if holder else None,
            run_url=holder.run_url if holder else "",
        )
    )


def _report_takeover(world: World, name: str, expired: LockInfo) -> None:
    run = f"{expired.who} (process {expired.pid}, `{expired.operation}`)"
    message = (
        f"Took over the lock of {name} from {run}: that run has not renewed the lock for so long that it must have"
        " ended."
    )
    hint = "If it still runs, it stops before its next write and before its next request to Google."
    world.emit(events.Warned(at=world.clock.now(), address=name, message=message, hint=hint))


@contextmanager
def holding_lock(world: World, name: str, operation: str, *, what: str) -> Iterator[Callable[[], None]]:
    """Hold a lock that is no deployment's, as long as this is open. The function renews it: call it every few minutes.

    `what` it protects is what a person reads. Another holder is waited for as long as for the lock of a deployment;
    then raise `errors.StateLocked`. The function raises `errors.StateConflict` if the lock is lost.
    """
    try:
        lease = _lock(world, name, operation)
    except errors.StateLocked as error:
        by = error.holder
        host = (by and by.host) or "an unknown host"
        who = "another process" if by is None else f"{by.who} (process {by.pid} on {host})"
        unlock = "" if by is None else f" If that process is gone: tpudeploy force-unlock {by.id}"
        hint = f"Follow it there, or wait for it with -lock-timeout 2h.{unlock}"
        raise errors.StateLocked(f"{what} is already run by {who}.", hint=hint, holder=by) from error
    try:
        yield lambda: world.state.prove(lease)
    finally:
        world.state.unlock(lease)


@contextmanager
def holding_budgets(world: World, name: str) -> Iterator[Callable[[], None]]:
    """Hold the lock of the budgets that several deployments share, for one of them.

    Call the function before what depends on the lock.

    It raises `errors.StateConflict` if the lock is lost by then. Another run holds it for a save, so it is waited for,
    whatever `Patience.lock` says of the locks of deployments.
    """
    lease = _budgets_lease(world, name)
    try:
        yield lambda: world.cost_backend.prove(lease)
    finally:
        world.cost_backend.unlock(lease)


def _budgets_lease(world: World, name: str) -> Lease:
    began, is_reported = world.clock.now(), False
    while True:
        try:
            return world.cost_backend.lock(BUDGETS, "apply")
        except errors.StateLocked as error:
            seconds = world.clock.now() - began
            if seconds >= _OLDEST_PROOF:
                raise
            if seconds >= _LONGEST_PAUSE and not is_reported:
                is_reported = True
                world.emit(
                    events.LockWaiting(at=world.clock.now(), address=name, message=error.message, seconds=_FIRST_PAUSE)
                )
            world.clock.sleep(_FIRST_PAUSE)


def states_by_name(backend: StateBackend, names: Iterable[str] = ()) -> dict[str, State]:
    """Return the states by deployment, all of them where no name is given. A marker is what a move left of one."""
    states: dict[str, State] = {}
    for name in names or backend.names():
        try:
            state = backend.read(name).state
        except errors.StateElsewhere as elsewhere:
            state = elsewhere.marker
        if state is not None:
            states[name] = state
    return states


def abandoned_locks(world: World, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:
    """Return the locks of these deployments that a killed run may have left behind.

    They are only shown to the user, so a lock that cannot be read stops nothing.
    """
    try:
        return world.state.left_locks(names)
    except (errors.StateError, errors.CloudError):
        return {}


def warnings_of_abandoned_locks(world: World, names: Iterable[str]) -> tuple[Diagnostic, ...]:
    """Return a warning for each of these locks, with the command that releases it."""
    return tuple(
        Diagnostic(code=error.code, message=error.message, severity=Severity.WARNING, hint=error.hint)
        for error in abandoned_locks(world, names).values()
    )
