"""What changed outside since the last apply: remembered beside live. An intended change is none of it: see diff.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.life import LossRecorded, ServerStopped
from tpudeploy.domain.plan import Change, Drift, Drifted, DriftKind
from tpudeploy.domain.slices import Phase, Slice
from tpudeploy.domain.state import Attempt, Record, State
from tpudeploy.domain.verify import ReplicaVerification
from tpudeploy.node.node_facts import LABELS, TAGS, differing
from tpudeploy.reconcile.attempt_status import AttemptStatus, DecisionContext, classify

SERVER = "server"  # the fingerprint of what runs, by the machine's own word
SERVING = "serving"
ENGINE = "engine."  # before what an engine says of itself


def drift(state: State, context: DecisionContext) -> tuple[Drift, ...]:
    """Return the drift of every slice that is granted and not being released."""
    return tuple(
        each
        for record in state.records
        for attempt in record.attempts
        if attempt.holds_slice and not attempt.is_lost
        for each in _of_slice(state.deployment, record.index, attempt, context)
    )


def missing(deployment: Deployment, state: State, context: DecisionContext) -> tuple[Drift, ...]:
    """Return the replicas that were applied and have no slice now, where `drift` has nothing new to say of them.

    An earlier run may have written the loss down, may be looking for another slice, or may have been a `destroy`. What
    was never applied is not missing, nor is a replica that only the profile has by now.
    """
    losses = ((index, _missing(state, state.record(index), context)) for index in range(deployment.replicas))
    return tuple(
        Drift(
            deployment=state.deployment,
            replica=index,
            kind=DriftKind.MISSING,
            slice_name=what[0],
            zone=str(state.record(index).home or ""),
            detail=what[1],
        )
        for index, what in losses
        if what is not None
    )


def _missing(state: State, record: Record, context: DecisionContext) -> tuple[str, str] | None:
    """The slice that one replica had, "" where its name is forgotten, and what has become of it."""
    classifications = [classify(a, context) for a in record.attempts]
    if any(j.status is AttemptStatus.UP and j.attempt.releasing_at is None for j in classifications):
        return None
    granted = [j.attempt for j in classifications if j.attempt.granted_at is not None]
    if any(a.releasing_at is None and not a.is_lost for a in granted):
        return None  # `drift` tells of it
    written_down = next((a.name for a in granted if a.is_lost), "")
    if written_down:
        return written_down, "taken away, as the state knows"
    if record.lost:
        return record.lost, "taken away; no other slice serves in its place yet"
    is_removed = state.goal is not None and state.goal.is_removal
    if granted and is_removed:
        return granted[0].name, "deleted by a `tpudeploy destroy` that was interrupted"
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
    classifications = [classify(a, context) for a in record.attempts]
    if any(
        j.status is AttemptStatus.UP and j.attempt.is_announced and j.attempt.releasing_at is None
        for j in classifications
    ):
        return ""
    lost_names = (
        j.attempt.name
        for j in classifications
        if j.attempt.is_announced
        and j.attempt.holds_slice
        and j.status in {AttemptStatus.GONE, AttemptStatus.DEAD, AttemptStatus.LEAVING}
    )
    return next(lost_names, record.lost)


def ineffective(deployment: str, replica: int, attempt: Attempt, verification: ReplicaVerification) -> Drift:
    """Of a server that does not do what was applied, by its own word."""
    fields = tuple(Drifted(path=f"{ENGINE}{s.name}", applied=s.declared, live=s.value) for s in verification.broken)
    return Drift(
        deployment=deployment,
        replica=replica,
        kind=DriftKind.NOT_IN_EFFECT,
        slice_name=attempt.name,
        zone=attempt.zone,
        fields=fields,
        detail="its engine was told otherwise",
        before=attempt.spec,
    )


def refreshed(state: State, drifts: Iterable[Drift]) -> State:
    """`state` with what is live in it: what it is to be planned from."""
    for each in drifts:
        record = state.record(each.replica)
        attempt = record.attempt(each.slice_name)
        if attempt is not None and each.kind is DriftKind.CHANGED:
            state = state.with_record(record.with_attempt(_live(attempt, each.fields)))
    return state


def recorded(state: State, drifts: Iterable[Drift]) -> State:
    """`state` as the world is, dead slices and silent servers too: what `-refresh-only` writes down."""
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


def mark_outside_changes(change: Change, drifts: Iterable[Drift]) -> Change:
    """`change` whose fields say where what they change came from outside."""
    outside = {f.path: f for d in drifts if d.slice_name == change.slice_name for f in d.fields}
    if not outside:
        return change
    fields = (
        replace(f, is_drift=True, applied=outside[f.path].applied) if f.path in outside else f for f in change.fields
    )
    return replace(change, fields=tuple(fields))


def _of_slice(deployment: str, replica: int, attempt: Attempt, context: DecisionContext) -> Iterator[Drift]:
    classification = classify(attempt, context)
    kind, detail = DriftKind.CHANGED, classification.reason
    fields: tuple[Drifted, ...] = ()
    match classification.status:
        case AttemptStatus.GONE:
            kind = DriftKind.DELETED
        case AttemptStatus.DEAD | AttemptStatus.LEAVING:
            kind = DriftKind.LOST
            if classification.slice is not None and classification.slice.phase is Phase.LEAVING:
                detail = f"{classification.slice.raw_state}: somebody deletes it outside tpudeploy"
            detail = detail or (classification.slice.raw_state if classification.slice is not None else "")
        case AttemptStatus.UP if classification.slice is not None:
            fields = tuple(_fields(attempt, classification.slice, context))
            if not fields:
                return
            if all(f.path == SERVING for f in fields):
                kind = DriftKind.UNHEALTHY
            detail = context.observed.health[attempt.name].detail if any(f.path == SERVING for f in fields) else ""
        case _:
            return
    yield Drift(
        deployment=deployment,
        replica=replica,
        kind=kind,
        slice_name=attempt.name,
        zone=attempt.zone,
        fields=fields,
        detail=detail,
        before=attempt.spec,
    )


def _fields(attempt: Attempt, slice_: Slice, context: DecisionContext) -> Iterator[Drifted]:
    updated_at = 0.0 if attempt.update is None else attempt.update.at
    if context.now - updated_at >= context.patience.update_again:  # a patch takes seconds to show
        yield from differing(attempt, slice_)
    yield from _server(attempt, context)
    health = context.observed.health.get(attempt.name)
    if attempt.is_announced and health is not None and not health.serving:
        yield Drifted(path=SERVING, applied=True, live=False)


def _server(attempt: Attempt, context: DecisionContext) -> Iterator[Drifted]:
    """What the machine says it runs. Right after a reboot it may still be the word of the boot before.

    What it made of a change that it was told here is none of it.
    """
    report = context.observed.reports.get(attempt.name)
    is_fresh = attempt.boot.at is not None and context.now - attempt.boot.at < context.patience.restart_again
    if report is None or not report.spec or is_fresh or attempt.is_answered_by(report) or not attempt.is_announced:
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
            spec |= {} if each.live is None else {each.path: each.live}
    return replace(attempt, spec=spec)
