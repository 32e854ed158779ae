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


def drift(state: State, moment: DecisionContext) -> tuple[Drift, ...]:
    """Of every slice that was granted, and that nobody here gave up."""
    return tuple(
        found
        for record in state.records
        for attempt in record.attempts
        if attempt.holds_slice and not attempt.is_lost
        for found in _of_slice(state.deployment, record.index, attempt, moment)
    )


def missing(deployment: Deployment, state: State, moment: DecisionContext) -> tuple[Drift, ...]:
    """Return the replicas that were applied and have no slice now, where `drift` has nothing new to say of them.

    An earlier run may have written the loss down, may be looking for another slice, or may have been a `destroy`. What
    was never applied is not missing, nor is a replica that only the profile has by now.
    """
    found = ((index, _missing(state, state.record(index), moment)) for index in range(deployment.replicas))
    return tuple(
        Drift(
            deployment=state.deployment,
            replica=index,
            kind=DriftKind.MISSING,
            slice_name=what[0],
            zone=str(state.record(index).home or ""),
            detail=what[1],
        )
        for index, what in found
        if what is not None
    )


def _missing(state: State, record: Record, moment: DecisionContext) -> tuple[str, str] | None:
    """The slice that one replica had, "" where its name is forgotten, and what has become of it."""
    judged = [classify(a, moment) for a in record.attempts]
    if any(j.status is AttemptStatus.UP and j.attempt.releasing_at is None for j in judged):
        return None
    granted = [j.attempt for j in judged if j.attempt.granted_at is not None]
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


def with_losses(state: State, moment: DecisionContext) -> State:
    """Return `state` in which each replica names the slice that was taken from it, until another one serves."""
    for record in state.records:
        lost = _lost(record, moment)
        if lost != record.lost:
            state = state.with_record(replace(record, lost=lost))
    return state


def _lost(record: Record, moment: DecisionContext) -> str:
    judged = [classify(a, moment) for a in record.attempts]
    if any(j.status is AttemptStatus.UP and j.attempt.is_announced and j.attempt.releasing_at is None for j in judged):
        return ""
    taken = (
        j.attempt.name
        for j in judged
        if j.attempt.is_announced
        and j.attempt.holds_slice
        and j.status in {AttemptStatus.GONE, AttemptStatus.DEAD, AttemptStatus.LEAVING}
    )
    return next(taken, record.lost)


def ineffective(deployment: str, replica: int, attempt: Attempt, found: ReplicaVerification) -> Drift:
    """Of a server that does not do what was applied, by its own word."""
    fields = tuple(Drifted(path=f"{ENGINE}{s.name}", applied=s.declared, live=s.value) for s in found.broken)
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


def refreshed(state: State, found: Iterable[Drift]) -> State:
    """`state` with what is live in it: what it is to be planned from."""
    for each in found:
        record = state.record(each.replica)
        attempt = record.attempt(each.slice_name)
        if attempt is not None and each.kind is DriftKind.CHANGED:
            state = state.with_record(record.with_attempt(_live(attempt, each.fields)))
    return state


def recorded(state: State, found: Iterable[Drift]) -> State:
    """`state` as the world is, dead slices and silent servers too: what `-refresh-only` writes down."""
    drifts = tuple(found)
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


def told(change: Change, found: Iterable[Drift]) -> Change:
    """`change` whose fields say where what they change came from outside."""
    outside = {f.path: f for d in found if d.slice_name == change.slice_name for f in d.fields}
    if not outside:
        return change
    fields = (
        replace(f, is_drift=True, applied=outside[f.path].applied) if f.path in outside else f for f in change.fields
    )
    return replace(change, fields=tuple(fields))


def _of_slice(deployment: str, replica: int, attempt: Attempt, moment: DecisionContext) -> Iterator[Drift]:
    judged = classify(attempt, moment)
    kind, detail = DriftKind.CHANGED, judged.reason
    fields: tuple[Drifted, ...] = ()
    match judged.status:
        case AttemptStatus.GONE:
            kind = DriftKind.DELETED
        case AttemptStatus.DEAD | AttemptStatus.LEAVING:
            kind = DriftKind.LOST
            if judged.slice is not None and judged.slice.phase is Phase.LEAVING:
                detail = f"{judged.slice.raw_state}: somebody deletes it outside tpudeploy"
            detail = detail or (judged.slice.raw_state if judged.slice is not None else "")
        case AttemptStatus.UP if judged.slice is not None:
            fields = tuple(_fields(attempt, judged.slice, moment))
            if not fields:
                return
            if all(f.path == SERVING for f in fields):
                kind = DriftKind.UNHEALTHY
            detail = moment.observed.health[attempt.name].detail if any(f.path == SERVING for f in fields) else ""
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


def _fields(attempt: Attempt, found: Slice, moment: DecisionContext) -> Iterator[Drifted]:
    updated_at = 0.0 if attempt.update is None else attempt.update.at
    if moment.now - updated_at >= moment.patience.update_again:  # a patch takes seconds to show
        yield from differing(attempt, found)
    yield from _server(attempt, moment)
    health = moment.observed.health.get(attempt.name)
    if attempt.is_announced and health is not None and not health.serving:
        yield Drifted(path=SERVING, applied=True, live=False)


def _server(attempt: Attempt, moment: DecisionContext) -> Iterator[Drifted]:
    """What the machine says it runs. Right after a reboot it may still be the word of the boot before.

    What it made of a change that it was told here is none of it.
    """
    report = moment.observed.reports.get(attempt.name)
    is_fresh = attempt.boot.at is not None and moment.now - attempt.boot.at < moment.patience.restart_again
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
