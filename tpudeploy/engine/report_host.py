"""Report the host of a slice to Google as faulty, and leave its place alone. Only a person's command does this.

Compute Engine then stops the machine. The Cloud TPU API has no such call, and Google may refuse the report: then the
slice is deleted, so that it is not billed any longer, and the next apply asks another place.
"""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.host_fault import HostFault, HostReport
from tpudeploy.domain.life import DeletionNamed, ReleaseBegan
from tpudeploy.domain.names import Address
from tpudeploy.domain.slices import Refusal, RefusalScope, Remedy
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.engine.capacity_history import CapacityHistory
from tpudeploy.engine.request_events import about, not_granted
from tpudeploy.engine.session import StateSession, open_session
from tpudeploy.ports import World
from tpudeploy.reconcile.failed_landings import HOST_FAULT, hold_seconds
from tpudeploy.reconcile.refusals import add_refusal

# The caller has to act before Google can be told, and may then want to keep the slice.
_OF_THE_CALLER = frozenset({"api-off", "credentials", "permission"})
_REASON = "its host is faulty"


def kept_slice(state: State | None, where: Address) -> Attempt:
    """Return the one slice of a replica that was granted and is kept. Raise `errors.StateError` otherwise."""
    record = None if state is None else state.record(where.replica or 0)
    slices = [] if record is None else [attempt for attempt in record.attempts if attempt.holds_slice]
    if not slices:
        raise errors.StateError(f"{where} has no slice.", hint="`tpudeploy status` shows its progress.")
    if len(slices) > 1:
        names = ", ".join(attempt.name for attempt in slices)
        raise errors.StateError(
            f"{where} has several slices, because one replaces another: {names}.",
            hint="Run `tpudeploy apply` until one is left, then report its host.",
        )
    return slices[0]


def report_host(world: World, where: Address, fault: HostFault) -> HostReport:
    """Report the host of a replica's slice, or delete the slice where that is not possible.

    Its place is held back before anything is sent, so that a run that is killed here and repeated does the same. Raise
    `errors.StateError` without a slice, `errors.Denied` where the caller may not report it, and `errors.Fault`.
    """
    with open_session(world, where.deployment, "report-host") as session:
        return _HostReporter(world, session, where).report(fault)


class _HostReporter:
    """Reports the host of one slice while the lock of its deployment is held."""

    def __init__(self, world: World, session: StateSession, where: Address) -> None:
        self._world = world
        self._session = session
        self._where = where
        self._attempt = kept_slice(session.state, where)

    def report(self, fault: HostFault) -> HostReport:
        self._hold_place(fault)
        operation, refusal = None, ""
        try:
            with self._session.asking():
                operation = self._world.cloud.report_host(self._attempt.ref, fault)
        except (errors.Refused, errors.Denied) as error:
            if error.refusal is None or error.refusal.kind in _OF_THE_CALLER:
                raise
            refusal = error.refusal.message
        if operation is None:
            self._delete()
        return HostReport(is_accepted=operation is not None, refusal=refusal)

    def _hold_place(self, fault: HostFault) -> None:
        """Save the refusal of the place, once for this slice, and report it."""
        attempt, record, now = self._attempt, self._record(), self._world.clock.now()
        since = attempt.granted_at or 0.0
        # An earlier run of this command saved it already, and was stopped or denied afterwards.
        if any(r.kind == HOST_FAULT and r.place == attempt.place and r.at >= since for r in record.refusals):
            return
        refusal = Refusal(
            kind=HOST_FAULT,
            message=fault.description,
            remedy=Remedy.NEXT_ZONE,
            scope=RefusalScope.PAIR,
            holds_seconds=hold_seconds(HOST_FAULT, 1),
        )
        others = [other for other in record.attempts if other is not attempt]
        patience = self._world.patience
        refusals = add_refusal(record.refusals, attempt, refusal, own_attempts=others, now=now, patience=patience)
        self._session.save(self._session.state.with_record(replace(record, refusals=refusals)))
        CapacityHistory(self._world).add_refusal(self._where.deployment, attempt, refusal)
        self._world.emit(not_granted(attempt, str(self._where), refusal, refusals[-1], at=now))

    def _delete(self) -> None:
        """Delete the slice. The next apply observes it until it is gone, and requests another one."""
        now = self._world.clock.now()
        self._save(self._attempt.after(ReleaseBegan(releasing_at=now, reason=_REASON, is_spare=False)))
        with self._session.asking():
            deletion = self._world.cloud.release(self._attempt.ref)
        if deletion is not None:
            self._save(self._attempt.after(DeletionNamed(deletion=deletion)))
        self._world.emit(events.Released(**about(self._attempt, str(self._where), at=now), reason=_REASON))

    def _save(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._session.save(self._session.state.with_record(self._record().with_attempt(attempt)))

    def _record(self) -> Record:
        return self._session.state.record(self._where.replica or 0)
