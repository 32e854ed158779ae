"""Compare the profile, the state and an observation: what would happen to each replica, and because of which line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.plan import Action, Change, Effect, FieldChange, Reason
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Approval, Attempt, Record, State
from tpudeploy.node.fingerprint import effect, server_print
from tpudeploy.node.node_facts import SPEC_KEY
from tpudeploy.node.own_end import sees_all_requests
from tpudeploy.node.router_machine import machine_near
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import AttemptStatus, Classification, DecisionContext, classify
from tpudeploy.reconcile.cutover import is_blue_green_change, is_handed_over, run_end
from tpudeploy.reconcile.decide import fits, matches
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.placement import allows, order_by_preference
from tpudeploy.reconcile.readiness import reason_to_hold, takes_requests
from tpudeploy.reconcile.replicas import at_replica, surplus_indexes
from tpudeploy.reconcile.rollout import ServerStatus

_PLACES = {"placement.zones", "placement.provisioning"}


def changes(
    deployment: Deployment, state: State, context: DecisionContext, targets: Collection[int] | None = None
) -> tuple[Change, ...]:
    """Return one change for each replica that the profile or the state has. `targets` are those that are covered."""
    all_changes = (
        *(
            _replica_change(at_replica(deployment, state, index), state.record(index), context, state.goal)
            for index in deployment.replica_indexes
        ),
        *(
            _destroy(deployment.name, state.record(index), context, Reason.SURPLUS)
            for index in surplus_indexes(deployment, state)
        ),
    )
    serving = _serving_replicas(state, context)
    covered = [index for index in deployment.replica_indexes if targets is None or index in targets]

    def held_change(change: Change) -> Change:
        if not _is_interrupted(change, serving):
            return change
        others = serving - {change.replica}
        return replace(change, waits=reason_to_hold(deployment, state, others, change.replica, covered))

    replica_changes = (_beside_others(held_change(change), serving, context) for change in all_changes)
    return (*replica_changes, *_router_changes(deployment, state, context))


def _router_changes(deployment: Deployment, state: State, context: DecisionContext) -> Iterator[Change]:
    """Yield the change of the router's VM, if there is one or is to be one."""
    if deployment.router_machine is not None:
        machine = machine_near(deployment.router_machine, state)
        yield _replica_change(machine, state.router, replace(context, scores={}), state.goal)
    elif state.router.attempts:
        yield _destroy(deployment.name, state.router, context, Reason.UNROUTED)


def removals(
    name: str,
    state: State,
    context: DecisionContext,
    targets: Collection[int] | None = None,
    reason: Reason = Reason.NONE,
) -> tuple[Change, ...]:
    """Return the changes that destroy the deployment, or those of its replicas that are targets."""
    all_changes = [_destroy(name, record, context, reason) for record in state.all_records if record.attempts]
    if reason is Reason.ENDED:
        # Its machine may have deleted itself; then there is nothing to do.
        all_changes = [c for c in all_changes if not _is_gone(state.record(c.replica), context)]
    serving = _serving_replicas(state, context)
    others = frozenset[int]() if targets is None else serving - frozenset(targets)
    return tuple(_beside_others(change, others | (serving & {change.replica}), context) for change in all_changes)


def _is_gone(record: Record, context: DecisionContext) -> bool:
    return all(classify(attempt, context).status is AttemptStatus.GONE for attempt in record.attempts)


def field_changes(deployment: Deployment, attempt: Attempt) -> Iterator[FieldChange]:
    """Yield each attribute in which the slice differs from what it should be."""
    before, after = attempt.spec, desired_attributes(deployment, attempt)
    differing = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    is_same_server = bool(differing) and server_print(before) == server_print(after)
    for path in differing:
        cost = effect(path)
        if cost is Effect.RESTART and is_same_server:
            cost = Effect.COSMETIC  # it is written in another way, and the same server runs
        if path in _PLACES and not allows(deployment, attempt):
            cost = Effect.REPLACE
        yield FieldChange(
            path=path,
            before=before.get(path),
            after=after.get(path),
            effect=cost,
            origin=deployment.origin(path),
        )


def _replica_change(deployment: Deployment, record: Record, context: DecisionContext, goal: Approval | None) -> Change:
    classifications = [classify(a, context) for a in record.attempts]
    alive = [j for j in classifications if j.status in {AttemptStatus.UP, AttemptStatus.WAITING, AttemptStatus.HIDDEN}]
    if not alive:
        return _create(deployment, record, _reason_to_create(classifications, goal), context)
    current = min(alive, key=lambda j: _rank(deployment, j))
    attempt = current.attempt
    fields = tuple(field_changes(deployment, attempt))
    action, reason = _action(deployment, current, fields, context)
    if action is Action.NO_OP and len(classifications) > 1:
        action, reason = Action.UPDATE, Reason.LEFTOVER
    fields += _machine_fields(deployment, attempt, context, reason)
    attributes = deployment.attributes_at(attempt.backend)
    hands_over = fits(deployment, attempt) and is_handed_over(deployment, attempt)
    price = prices.usd_per_hour(attempt)
    change = Change(
        deployment=deployment.name,
        replica=record.index,
        action=action,
        reason=reason,
        fields=fields,
        unchanged=len(attributes) - sum(1 for f in fields if f.path in attributes),
        slice_name=attempt.name,
        zone=attempt.zone,
        create_before_destroy=hands_over or deployment.lifecycle.create_before_destroy,
        hands_over=hands_over,
        run_ends_at=run_end(attempt, context) if hands_over and attempt.is_ending else None,
        usd_per_hour_before=price,
        usd_per_hour_after=price,
        ceiling=_ceiling(deployment, action, [j.attempt for j in alive]),
        before=attempt.spec,
        after=desired_attributes(deployment, attempt),
    )
    return _with_replacement(change, deployment, attempt, alive, context) if action is Action.REPLACE else change


def _serving_replicas(state: State, context: DecisionContext) -> frozenset[int]:
    """Return the replicas that take requests now. A plan probes no server, so that they answer is assumed."""
    pairs = state.indexed_slice_attempts
    return frozenset(index for index, attempt in pairs if takes_requests(attempt, context.observed))


def _beside_others(change: Change, serving: Collection[int], context: DecisionContext) -> Change:
    """Return the change of a replica that takes requests with the replicas that serve while it is interrupted."""
    # It waits until another replica serves.
    others = max(len(frozenset(serving) - {change.replica}), 1 if change.waits else 0)
    if not _is_interrupted(change, serving) or not others:
        return change
    return replace(change, replicas_serving=others, drain_seconds_most=context.patience.drained)


def _is_interrupted(change: Change, serving: Collection[int]) -> bool:
    """Return whether a replica takes requests, and does not during its change."""
    is_replaced_first = change.action is Action.REPLACE and not change.create_before_destroy
    return change.replica in serving and (change.action in {Action.RESTART, Action.DESTROY} or is_replaced_first)


def _with_replacement(
    change: Change, deployment: Deployment, attempt: Attempt, alive: list[Classification], context: DecisionContext
) -> Change:
    """Return the change with the slice that replaces the current one: what it costs, and whether it is requested."""
    replacements = [j for j in alive if matches(deployment, j.attempt)]
    failed = (j.attempt.name for j in replacements if _has_failed(deployment, j, context))
    return replace(
        change,
        reason=Reason.RESUMES if replacements else change.reason,
        boots_anew=next(failed, ""),
        usd_per_hour_after=_first_price(deployment),
        **_acquisition(deployment, context, old=attempt),
    )


def _action(
    deployment: Deployment, current: Classification, fields: tuple[FieldChange, ...], context: DecisionContext
) -> tuple[Action, Reason]:
    attempt, effects = current.attempt, {f.effect for f in fields}
    if Effect.REPLACE in effects or not matches(deployment, attempt):
        return Action.REPLACE, _reason_to_replace(deployment, attempt)
    # It is requested and not granted yet. An earlier run began this.
    if current.status is not AttemptStatus.UP:
        return Action.CREATE, Reason.RESUMES
    if Effect.RESTART in effects:
        return Action.RESTART, Reason.NONE
    server = ServerStatus(deployment=deployment, replica=0, attempt=attempt, context=context)
    # No attribute differs, so either someone started another server, or an earlier run saved the restart and stopped.
    if server.must_restart():
        is_outside_change = attempt.boot.server not in {server.desired_server, server_print(attempt.spec)}
        return Action.RESTART, Reason.DRIFTED if is_outside_change else Reason.RESUMES
    if not attempt.is_announced:
        return (Action.RESTART, Reason.FAILED) if server.failure() else (Action.CREATE, Reason.RESUMES)
    if fields:
        return Action.UPDATE, Reason.NONE
    # A run was killed after its server served again, and before clients were sent back to it.
    if attempt.draining_at is not None:
        return Action.UPDATE, Reason.RESUMES
    # The metadata that an apply sent a moment ago may not show yet, and are no drift.
    has_metadata = server.has_current_metadata() or server.has_recent_update()
    return (Action.NO_OP, Reason.NONE) if has_metadata else (Action.UPDATE, _reason_of_metadata(server))


def _reason_of_metadata(server: ServerStatus) -> Reason:
    """Return why the metadata name another server: the watcher undid a change, or they were set outside tpudeploy."""
    is_undone = server.shows_change() and server.attempt.is_undone_by(server.report)
    return Reason.UNDONE if is_undone else Reason.DRIFTED


def _machine_fields(
    deployment: Deployment, attempt: Attempt, context: DecisionContext, reason: Reason
) -> tuple[FieldChange, ...]:
    """Return what of a machine differs from what was sent to it: none of it is an attribute of the profile."""
    if reason not in {Reason.DRIFTED, Reason.UNDONE}:
        return ()
    server = ServerStatus(deployment=deployment, replica=0, attempt=attempt, context=context)
    pairs = {
        "server": (attempt.boot.server, server.desired_server),
        f"metadata.{SPEC_KEY}": (server.slice.metadata.get(SPEC_KEY), server.desired_server),
        "metadata.startup-script": (server.slice.script, attempt.script),
    }
    return tuple(
        FieldChange(path=path, before=before, after=after, effect=Effect.COSMETIC)
        for path, (before, after) in pairs.items()
        if before and after and before != after
    )


def _reason_to_replace(deployment: Deployment, attempt: Attempt) -> Reason:
    if attempt.is_to_go:
        return Reason.REQUESTED
    # The fields of the change are the reason.
    if not fits(deployment, attempt):
        return Reason.NONE
    return Reason.BLUE_GREEN if is_blue_green_change(deployment, attempt) else Reason.RENEWS


def _has_failed(deployment: Deployment, classification: Classification, context: DecisionContext) -> bool:
    """Return whether a slice that is to take over is up, and its server has failed."""
    if classification.status is not AttemptStatus.UP or classification.attempt.is_announced:
        return False
    server = ServerStatus(deployment=deployment, replica=0, attempt=classification.attempt, context=context)
    return not server.must_restart() and bool(server.failure())


def _reason_to_create(classifications: list[Classification], goal: Approval | None) -> Reason:
    """Return why a replica without a living slice is requested."""
    if not classifications:
        return Reason.NONE
    is_released = [j.attempt.releasing_at is not None for j in classifications]
    is_ours = all(j.attempt.releasing_at is not None for j in classifications if j.attempt.granted_at is not None)
    if is_ours and goal is not None and goal.is_removal and any(is_released):
        return Reason.DESTROYED
    # Nothing was granted yet, or an earlier run released what was, and stopped before it requested the next one.
    if is_ours:
        return Reason.RESUMES
    return Reason.GONE if all(map(_was_deleted, classifications)) else Reason.LOST


def _was_deleted(classification: Classification) -> bool:
    """Return whether a slice was or is being deleted by someone else: Google itself only suspends one."""
    current = classification.slice
    return classification.status is AttemptStatus.GONE or (current is not None and current.phase is Phase.LEAVING)


def _create(deployment: Deployment, record: Record, reason: Reason, context: DecisionContext) -> Change:
    after = deployment.attributes
    return Change(
        deployment=deployment.name,
        replica=record.index,
        action=Action.CREATE,
        reason=reason,
        fields=tuple(
            FieldChange(path=p, before=None, after=v, effect=effect(p), origin=origin)
            for (p, v), origin in zip(after.items(), deployment.origins_of(after), strict=True)
        ),
        usd_per_hour_after=_first_price(deployment),
        sees_all_requests=sees_all_requests(deployment),
        **_acquisition(deployment, context),
        after=after,
    )


def _destroy(name: str, record: Record, context: DecisionContext, reason: Reason) -> Change:
    classifications = [classify(a, context) for a in record.attempts]
    statuses = [AttemptStatus.UP, *AttemptStatus]
    attempt = min(classifications, key=lambda j: statuses.index(j.status)).attempt
    return Change(
        deployment=name,
        replica=record.index,
        action=Action.DESTROY,
        reason=reason,
        fields=tuple(FieldChange(path=p, before=v, after=None, effect=Effect.REPLACE) for p, v in attempt.spec.items()),
        slice_name=attempt.name,
        zone=attempt.zone,
        usd_per_hour_before=None if attempt.granted_at is None else prices.usd_per_hour(attempt),
        ceiling=prices.ceiling_of_attempts(record.attempts),
        before=attempt.spec,
    )


def _ceiling(deployment: Deployment, action: Action, alive: list[Attempt]) -> Ceiling:
    """Return what may be billed at one time of a replica that has slices or requests and is not replaced."""
    ceiling = prices.ceiling_of_attempts(alive)
    if action is not Action.CREATE:
        return ceiling
    # Its requests count among those that may be granted together. An earlier profile may have had dearer places.
    return max(ceiling, prices.ceiling_of_acquisition(deployment)[1], key=lambda each: each.usd_per_hour)


def _first_price(deployment: Deployment) -> float | None:
    return prices.usd_per_hour_at(deployment, next(iter(order_by_preference(deployment, None, {})), None))


def _acquisition(deployment: Deployment, context: DecisionContext, *, old: Attempt | None = None) -> dict[str, Any]:
    """Return the fields of a change that say what may be billed while a slice is acquired, and for how long.

    `old` is the slice that it replaces. It is billed at the same time, if it goes only once the new one serves.
    """
    costs = [prices.usd_per_hour_at(deployment, candidate) for candidate in deployment.candidates]
    count, ceiling = prices.ceiling_of_acquisition(deployment)
    first = min(count, deployment.first_requests or count)
    if old is not None:
        of_old = prices.ceiling_of_attempts([old])
        if deployment.lifecycle.create_before_destroy or is_handed_over(deployment, old):
            count, first, ceiling = count + 1, first + 1, ceiling + of_old
        else:
            ceiling = max(ceiling, of_old, key=lambda each: each.usd_per_hour)
    return {
        "usd_per_hour_most": max((usd for usd in costs if usd is not None), default=None),
        "slices_at_once": count,
        "slices_at_first": first,
        "usd_per_hour_at_once": ceiling.usd_per_hour if ceiling.is_known else None,
        "ceiling": ceiling,
        "seconds_at_once": context.patience.poll_most + context.patience.deletion,
        "max_run_seconds": deployment.max_run_seconds,
        "places": deployment.candidates if len(deployment.backends) > 1 else (),
    }


def _rank(deployment: Deployment, classification: Classification) -> tuple[bool, bool, bool, str]:
    """Return the order in which slices represent a replica: one that is to go, one that clients use, one that is up."""
    attempt = classification.attempt
    is_draining = attempt.draining_at is not None
    return (matches(deployment, attempt), is_draining, classification.status is not AttemptStatus.UP, attempt.name)
