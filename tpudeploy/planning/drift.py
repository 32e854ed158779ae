"""Compare what was applied with what is live. A change of the profile is not drift: diff.py compares that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.life import LossRecorded, ServerStopped
from tpudeploy.domain.names import SliceName
from tpudeploy.domain.plan import DESTROY_INTERRUPTED, Change, Drifted, DriftKind, SliceDrift
from tpudeploy.domain.slices import Phase, Slice
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.domain.verify import ReplicaVerification
from tpudeploy.node.node_facts import LABELS, TAGS, differing
from tpudeploy.reconcile.attempt_status import AttemptStatus, DecisionContext, classify

SERVER = "server"  # the fingerprint of the server that the machine reports
SERVING = "serving"
ENGINE = "engine."  # the prefix of a setting that an engine reports


def drift(state: State, context: DecisionContext) -> tuple[SliceDrift, ...]:
    """Return the drift of every slice that is granted and not being released."""
    drifts: list[SliceDrift] = []
    for index, attempt in state.indexed_attempts:
        # A loss that is recorded already is reported by `missing`.
        if attempt.holds_slice and not attempt.is_lost:
            drifts += _slice_drift(state.deployment, index, attempt, context)
    return (*drifts, *_late_slices(state, context))


def _late_slices(state: State, context: DecisionContext) -> Iterator[SliceDrift]:
    """Yield the slices that appeared after their requests were forgotten."""
    for attempt in state.late_attempts:
        slice_, name = context.observed.late.get(attempt.name), SliceName.parse(attempt.name)
        if slice_ is not None and name is not None:
            yield SliceDrift(
                deployment=state.deployment,
                replica=name.replica,
                kind=DriftKind.UNTRACKED,
                slice_name=attempt.name,
                zone=attempt.zone,
                detail=slice_.raw_state,
                before=attempt.spec,
            )


def missing(deployment: Deployment, state: State, context: DecisionContext) -> tuple[SliceDrift, ...]:
    """Return the replicas that were applied and have no slice now, unless `drift` reports the loss.

    An earlier run may have recorded the loss, may be acquiring another slice, or may have been a `destroy`. A replica
    that was never applied is not missing.
    """
    drifts: list[SliceDrift] = []
    for index in deployment.replica_indexes:
        record = state.record(index)
        loss = _missing(state, record, context)
        if loss is not None:
            slice_name, detail = loss
            drift_ = SliceDrift(
                deployment=state.deployment,
                replica=index,
                kind=DriftKind.MISSING,
                slice_name=slice_name,
                zone=str(record.home or ""),
                detail=detail,
            )
            drifts.append(drift_)
    return tuple(drifts)


def _missing(state: State, record: Record, context: DecisionContext) -> tuple[str, str] | None:
    """Return the name of the slice that a replica had, "" if it is forgotten, and what happened to it."""
    if any(classify(a, context).status is AttemptStatus.UP for a in record.attempts):
        return None
    granted = [a for a in record.attempts if a.granted_at is not None]
    # The loss is not recorded yet, so `drift` reports it.
    if any(a.holds_slice and not a.is_lost for a in granted):
        return None
    recorded_loss = next((a.name for a in granted if a.is_lost), "")
    if recorded_loss:
        return recorded_loss, "taken away, as the state records"
    if record.lost:
        return record.lost, "taken away; no other slice serves in its place yet"
    return _destroyed(state, granted)


def _destroyed(state: State, granted: list[Attempt]) -> tuple[str, str] | None:
    if granted and state.goal is not None and state.goal.is_removal:
        return granted[0].name, DESTROY_INTERRUPTED
    # A state without a goal, whose attempts were numbered once, is what a `destroy` leaves.
    if not state.attempts and state.goal is None and state.next_attempt:
        return "", "deleted by `tpudeploy destroy`"
    return None


def with_losses(state: State, context: DecisionContext) -> State:
    """Return `state` in which each replica names the slice that was taken from it, until another one serves."""
    for record in state.records:
        slice_name = _loss(record, context)
        if slice_name != record.lost:
            state = state.with_record(replace(record, lost=slice_name))
    return state


def _loss(record: Record, context: DecisionContext) -> str:
    served = [classify(a, context) for a in record.attempts if a.is_announced]
    if any(j.status is AttemptStatus.UP for j in served):
        return ""
    lost_statuses = {AttemptStatus.GONE, AttemptStatus.DEAD, AttemptStatus.LEAVING}
    return next((j.attempt.name for j in served if j.attempt.holds_slice and j.status in lost_statuses), record.lost)


def ineffective(deployment: str, replica: int, attempt: Attempt, verification: ReplicaVerification) -> SliceDrift:
    """Return the drift of a server that reports other settings than the declared ones."""
    fields = tuple(Drifted(path=f"{ENGINE}{s.name}", applied=s.declared, live=s.value) for s in verification.broken)
    return SliceDrift(
        deployment=deployment,
        replica=replica,
        kind=DriftKind.NOT_IN_EFFECT,
        slice_name=attempt.name,
        zone=attempt.zone,
        fields=fields,
        detail="its engine runs with other settings than the declared ones",
        before=attempt.spec,
    )


def refreshed(state: State, drifts: Iterable[SliceDrift]) -> State:
    """Return `state` with the live values: a plan starts from them."""
    for each in drifts:
        record = state.record(each.replica)
        attempt = record.attempt(each.slice_name)
        if attempt is not None and each.kind is DriftKind.CHANGED:
            state = state.with_record(record.with_attempt(_live(attempt, each.fields)))
    return state


def recorded(state: State, drifts: Iterable[SliceDrift]) -> State:
    """Return `state` with the live values, lost slices and silent servers included: what `-refresh-only` saves."""
    drifts = tuple(drifts)
    state = refreshed(state, drifts)
    for each in drifts:
        record = state.record(each.replica)
        attempt = record.attempt(each.slice_name)
        if attempt is None:
            continue
        if each.kind is DriftKind.DELETED:
            state = state.with_record(replace(record.without(attempt.name), lost=attempt.name))
        else:
            if each.kind is DriftKind.LOST:
                attempt = attempt.after(LossRecorded())
            if any(f.path == SERVING for f in each.fields):
                attempt = attempt.after(ServerStopped())
            state = state.with_record(record.with_attempt(attempt))
    return state


def mark_outside_changes(change: Change, drifts: Iterable[SliceDrift]) -> Change:
    """Return `change` with the fields marked that were changed outside."""
    outside = {f.path: f for d in drifts if d.slice_name == change.slice_name for f in d.fields}
    if not outside:
        return change
    fields = (
        replace(f, is_drift=True, applied=outside[f.path].applied) if f.path in outside else f for f in change.fields
    )
    return replace(change, fields=tuple(fields))


def _slice_drift(deployment: str, replica: int, attempt: Attempt, context: DecisionContext) -> Iterator[SliceDrift]:
    classification = classify(attempt, context)
    current, detail = classification.slice, classification.reason
    fields: tuple[Drifted, ...] = ()
    match classification.status:
        case AttemptStatus.GONE:
            kind = DriftKind.DELETED
        case AttemptStatus.DEAD | AttemptStatus.LEAVING:
            kind = DriftKind.LOST
            raw_state = "" if current is None else current.raw_state
            is_being_deleted = current is not None and current.phase is Phase.LEAVING
            detail = f"{raw_state}: it is being deleted outside tpudeploy" if is_being_deleted else detail or raw_state
        case AttemptStatus.UP if current is not None:
            fields = tuple(_fields(attempt, current, context))
            paths = {f.path for f in fields}
            if not paths:
                return
            kind = DriftKind.UNHEALTHY if paths == {SERVING} else DriftKind.CHANGED
            detail = context.observed.health[attempt.name].detail if SERVING in paths else ""
        case _:
            return
    yield SliceDrift(
        deployment=deployment,
        replica=replica,
        kind=kind,
        slice_name=attempt.name,
        zone=attempt.zone,
        fields=fields,
        detail=detail,
        before=attempt.spec,
    )


def _fields(attempt: Attempt, current: Slice, context: DecisionContext) -> Iterator[Drifted]:
    updated_at = 0.0 if attempt.update is None else attempt.update.at
    # A patch takes seconds to show.
    if context.now - updated_at >= context.patience.update_again:
        yield from differing(attempt, current)
    yield from _server(attempt, context)
    health = context.observed.health.get(attempt.name)
    if attempt.is_announced and health is not None and not health.serving:
        yield Drifted(path=SERVING, applied=True, live=False)


def _server(attempt: Attempt, context: DecisionContext) -> Iterator[Drifted]:
    """Yield the server that the machine reports, if it is another one than was applied."""
    report = context.observed.reports.get(attempt.name)
    # A server that clients never used is still being brought up. A report about our own change is not drift.
    if report is None or not report.spec or not attempt.is_announced or attempt.is_answered_by(report):
        return
    # Right after a restart, the report may be the one of the previous boot.
    restarted_at = attempt.boot.at
    if restarted_at is not None and context.now - restarted_at < context.patience.restart_again:
        return
    if attempt.boot.server and report.spec != attempt.boot.server:
        yield Drifted(path=SERVER, applied=attempt.boot.server, live=report.spec)


def _live(attempt: Attempt, fields: Iterable[Drifted]) -> Attempt:
    spec = dict(attempt.spec)
    for each in fields:
        if each.path == SERVER:
            attempt = replace(attempt, boot=replace(attempt.boot, server=str(each.live)))
        elif each.path == TAGS or each.path.startswith(LABELS):
            spec.pop(each.path, None)
            if each.live is not None:
                spec[each.path] = each.live
    return replace(attempt, spec=spec)
