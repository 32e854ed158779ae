"""The status of deployments, from their states and one observation. It takes no lock and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import CloudError, NotObserved
from tpudeploy.domain.names import ROUTER, address
from tpudeploy.domain.slices import BootPhase, Health, Observed, Phase
from tpudeploy.domain.state import Approval, Attempt, State
from tpudeploy.domain.status import DeploymentStatus, LateSlice, ReplicaStatus, ScaleStatus
from tpudeploy.engine.confirmation import urls_of
from tpudeploy.engine.observe import ObservationTarget, not_observed, observe_all_or_each, readable_states
from tpudeploy.engine.session import abandoned_locks
from tpudeploy.node.fingerprint import aim_print
from tpudeploy.planning.diff import changes
from tpudeploy.ports import World
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import BILLED, AttemptStatus, Classification, DecisionContext, classify
from tpudeploy.reconcile.ends import next_end, until_end
from tpudeploy.reconcile.replicas import with_replicas
from tpudeploy.reconcile.request_table import boot_stage

_NOTHING = "nothing"
_UNKNOWN = Unsized(because="no profile was given")
_PARTS_MOST = 4096  # all parts of twelve replicas
_WAITING = {AttemptStatus.HIDDEN, AttemptStatus.WAITING}
# The reports that are read of machines whose servers have served before. They have the notice of a preemption, which
# holds for half a minute; that of each machine of a fleet would be a request more.
_MOST_REPORTS = 20


def statuses(world: World, deployments: Mapping[str, Deployment | None]) -> tuple[DeploymentStatus, ...]:
    """Return the status of each deployment by its name. Endpoints are probed if the profile is given.

    If the state or the slices of one of several cannot be read, that one has an `error` instead of replicas. Raise
    `errors.Fault`, `errors.Denied` or `errors.StateError` if that is so for all of them.
    """
    states, failures = readable_states(world, deployments)
    if failures and len(failures) == len(deployments):
        raise next(iter(failures.values()))
    subjects = {
        name: ObservationTarget(state=s, deployment=deployments[name]) for name, s in states.items() if s is not None
    }
    observations: dict[str, Observed] = {}
    answers = observe_all_or_each(world, list(subjects.values()), loads=True, most_reports=_MOST_REPORTS)
    for name, observed in zip(subjects, answers, strict=True):
        if isinstance(observed, CloudError):
            failures[name] = observed
        else:
            observations[name] = observed
    locks = abandoned_locks(world, deployments)
    results: list[DeploymentStatus] = []
    for name, deployment in deployments.items():
        if name in failures:
            status = DeploymentStatus(name=name, replicas=(), error=failures[name])
        elif name in observations:
            status = _status(world, subjects[name].state, observations[name], deployment)
        else:
            status = DeploymentStatus(name=name, replicas=(ReplicaStatus(address=address(name, 0), state=_NOTHING),))
        if name in locks:
            status = replace(status, lock=" ".join(f"{locks[name].message} {locks[name].hint}".split()))
        results.append(status)
    return tuple(results)


def _status(world: World, state: State, observed: Observed, deployment: Deployment | None) -> DeploymentStatus:
    replicas = tuple(_replicas(world, state, observed, deployment))
    ceiling = _ceiling(state, DecisionContext(observed=observed, patience=world.patience))
    status = DeploymentStatus(
        name=state.deployment,
        replicas=replicas,
        usd_per_hour_at_once=ceiling.usd_per_hour if ceiling is not None and ceiling.is_known else None,
        ceiling=ceiling,
    )
    ended, end = state.ended, None
    if deployment is not None and ended is None and state.attempts:
        end = next_end(deployment, state, observed.at)
        has_slices = any(replica.usd_per_hour is not None for replica in replicas)
        ended = None if has_slices else until_end(deployment, state, observed).ended
    if end is not None:
        status = replace(status, ends_in=end.at - observed.at, ends_by=end.cause)
    status = replace(status, ended=ended)
    unended = [report.unended for a in state.attempts if (report := observed.reports.get(a.name)) is not None]
    status = replace(status, unended=next(filter(None, unended), ""))
    status = replace(status, scale=_scale(deployment, state, observed))
    status = replace(status, error=_not_observed(state, observed), late=tuple(_late_slices(state, observed)))
    if state.goal is None:
        return status
    return replace(status, underway=f"started by {state.goal.who}", continue_with=_continuation(state, state.goal))


def _late_slices(state: State, observed: Observed) -> Iterator[LateSlice]:
    for attempt in state.late_attempts:
        slice_ = observed.late.get(attempt.name)
        if slice_ is not None:
            yield LateSlice(
                name=attempt.name,
                zone=attempt.zone,
                cloud=slice_.raw_state,
                usd_per_hour=prices.usd_per_hour(attempt),
            )


def _not_observed(state: State, observed: Observed) -> NotObserved | None:
    """Return the error of the first server that was reached and gave no answer, or None."""
    for index, attempt in state.indexed_attempts:
        health = observed.health.get(attempt.name)
        if health is not None and health.serving and health.silence:
            return not_observed(address(state.deployment, index), health)
    return None


def _scale(deployment: Deployment | None, state: State, observed: Observed) -> ScaleStatus | None:
    if deployment is None or deployment.scale is None:
        return None
    return ScaleStatus(
        replicas=len(with_replicas(deployment, state, observed).replica_indexes),
        min=max(deployment.scale.min, deployment.on_demand_floor),
        max=deployment.scale.max,
        last=state.scaled,
        ago=None if state.scaled is None else observed.at - state.scaled.at,
    )


def _ceiling(state: State, context: DecisionContext) -> Ceiling | None:
    """Return the price of all slices and requests together, if a request may be granted beside another slice."""
    all_slices = [classify(attempt, context) for record in state.all_records for attempt in record.attempts]
    waiting = [each.attempt for each in all_slices if each.status in _WAITING]
    billed = [each.attempt for each in all_slices if each.status not in _WAITING and _is_billed(each)]
    if not waiting or len(waiting) + len(billed) <= 1:
        return None
    return prices.ceiling_of_attempts([*waiting, *billed])


def _continuation(state: State, approval: Approval) -> str:
    """Return the command that finishes an interrupted run: after a `destroy`, `apply` would buy slices."""
    if not approval.is_removal:
        return "tpudeploy apply"
    if not approval.fingerprint:
        return "tpudeploy destroy"
    targets = [f"-target={address(state.deployment, index)}" for index in _removed_part(state, approval)]
    return " ".join(["tpudeploy destroy", *(targets or ["-target=..."])])


def _removed_part(state: State, approval: Approval) -> Sequence[int]:
    """Return the replicas that were to be deleted. The approval has only the fingerprint of their addresses."""
    indexes = sorted(record.index for record in state.records)
    parts = chain.from_iterable(combinations(indexes, size) for size in range(1, len(indexes) + 1))
    for part in islice(parts, _PARTS_MOST):
        if aim_print(None, part) == approval.fingerprint:
            return part
    # The state no longer has all of them. Those that are being released are among them.
    return [r.index for r in state.records if any(a.releasing_at is not None for a in r.attempts)]


def _replicas(world: World, state: State, observed: Observed, deployment: Deployment | None) -> Iterator[ReplicaStatus]:
    context = DecisionContext(observed=observed, patience=world.patience)
    if deployment is not None:
        deployment = with_replicas(deployment, state, observed)
    replicas = () if deployment is None else deployment.replica_indexes
    reasons = _reasons_to_wait(state, context, deployment)
    indexes = {record.index for record in state.all_records if record.attempts} | set(replicas)
    # The router's VM comes after the replicas.
    for index in sorted(indexes, key=lambda index: (index == ROUTER, index)):
        attempts = state.record(index).attempts
        target = None if deployment is None else deployment.of_replica(index)
        budget = _UNKNOWN if target is None else target.budget
        if not attempts:
            yield ReplicaStatus(address=address(state.deployment, index), state=_NOTHING)
        for attempt in attempts:
            status = _replica_status(address(state.deployment, index), classify(attempt, context), observed, budget)
            yield replace(status, undo=_undo(state, attempt, observed), waits=reasons.get(attempt.name, ""))


def _reasons_to_wait(state: State, context: DecisionContext, deployment: Deployment | None) -> Mapping[str, str]:
    """Return why changes of a run that did not finish wait for other replicas, by their slices."""
    if deployment is None or state.goal is None or state.goal.is_removal:
        return {}
    return {change.slice_name: change.waits for change in changes(deployment, state, context) if change.waits}


def _undo(state: State, attempt: Attempt, observed: Observed) -> str:
    """Return why a node goes back from a change that a run has not ended yet, or ""."""
    report = observed.reports.get(attempt.name)
    if state.goal is None or report is None or not attempt.is_undone_by(report):
        return ""
    return report.cause


def _is_billed(classification: Classification) -> bool:
    """Return whether a slice is billed: some machines of one that is no use may still run."""
    current = classification.slice
    return classification.status in BILLED or (current is not None and current.machines_running > 0)


def _replica_status(
    replica_address: str, classification: Classification, observed: Observed, budget: HbmBudget | Unsized
) -> ReplicaStatus:
    attempt, slice_ = classification.attempt, classification.slice
    status = ReplicaStatus(
        address=replica_address,
        state=_state_word(classification),
        slice_name=attempt.name,
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        backend=attempt.backend,
        accelerator_type=str(attempt.spec.get("tpu.type") or attempt.spec.get("vm.machine", "")),
        model=str(attempt.spec.get("model.id", "")),
        cloud="not found" if slice_ is None else slice_.raw_state,
        stage=boot_stage(classification, observed, budget),
        age=observed.at - (attempt.asked_at if attempt.granted_at is None else attempt.granted_at),
        lapses_in=_lapses_in(classification, observed),
    )
    if slice_ is not None and slice_.ends_at is not None:
        status = replace(status, ends_in=slice_.ends_at - observed.at)
    if _is_billed(classification):
        status = replace(status, usd_per_hour=prices.usd_per_hour(attempt))
    if classification.status in _WAITING:
        most = prices.usd_per_run(attempt)
        status = replace(status, usd_per_hour_granted=prices.usd_per_hour(attempt), usd_most=most)
    report, health = observed.reports.get(attempt.name), observed.health.get(attempt.name)
    if report is not None:
        status = replace(status, boot=report.phase, boot_detail=report.detail)
    if health is not None:
        status = _with_health(status, health)
    elif slice_ is not None and attempt.is_announced:
        status = replace(status, url=next(urls_of(attempt, slice_), ""))
    if health is not None and health.serving and report is None:
        # The report of one of many was not read: a server that answers has reached this phase.
        status = replace(status, boot=BootPhase.SERVING)
    return replace(status, load=observed.loads.get(attempt.name))


def _with_health(status: ReplicaStatus, health: Health) -> ReplicaStatus:
    """Return the status with the result of a probe. One that was reached and gave no answer is not observed."""
    if health.silence:
        state = "up, not observed" if status.state == "up" else status.state
        return replace(status, state=state, detail=health.silence, url=health.url)
    state = status.state
    if state == "up":
        state = "serving" if health.serving else "up, not serving"
    return replace(status, state=state, serving=health.serving, detail=health.detail, url=health.url)


def _lapses_in(classification: Classification, observed: Observed) -> float | None:
    """Return the seconds until a request lapses. One that Google has begun to fulfil does not lapse."""
    is_queued = classification.slice is None or classification.slice.phase in {Phase.CREATING, Phase.QUEUED}
    expires_at = classification.attempt.expires_at
    if expires_at is None or not is_queued or classification.status not in _WAITING:
        return None
    return expires_at - observed.at


def _state_word(classification: Classification) -> str:
    if classification.status is AttemptStatus.UP and classification.attempt.draining_at is not None:
        return "draining"
    return "up" if classification.status is AttemptStatus.UP else classification.status
