"""Desired, remembered and observed, side by side: what would happen to each replica, and because of which line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.plan import Action, Change, Effect, FieldChange, Reason
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Approval, Attempt, Record, State
from tpudeploy.node.fingerprint import effect, server_print
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import AttemptStatus, Classification, DecisionContext, classify
from tpudeploy.reconcile.cutover import is_blue_green_change, is_handed_over, run_end
from tpudeploy.reconcile.decide import fits, matches
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.placement import allows
from tpudeploy.reconcile.rollout import ServerStatus

_PLACES = {"placement.zones", "placement.provisioning"}


def changes(deployment: Deployment, state: State, context: DecisionContext) -> tuple[Change, ...]:
    """One change for each replica that is wanted or remembered."""
    tracked = {r.index for r in state.records if r.attempts}
    replica_changes = [
        _replica_change(deployment, state.record(index), context, state.goal) for index in range(deployment.replicas)
    ]
    surplus = sorted(i for i in tracked if i >= deployment.replicas)
    return (
        *replica_changes,
        *(_unwanted(deployment.name, state.record(i), context, Reason.SURPLUS) for i in surplus),
    )


def removals(name: str, state: State, context: DecisionContext) -> tuple[Change, ...]:
    """What destroying the deployment means."""
    return tuple(_unwanted(name, record, context, Reason.NONE) for record in state.records if record.attempts)


def field_changes(deployment: Deployment, attempt: Attempt) -> Iterator[FieldChange]:
    """Every attribute in which the slice differs from what the profile wants of it."""
    before, after = attempt.spec, desired_attributes(deployment, attempt)
    differing = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    is_same_server = bool(differing) and server_print(before) == server_print(after)
    for path in differing:
        cost = effect(path)
        if cost is Effect.RESTART and is_same_server:
            cost = Effect.COSMETIC  # another way to write what runs
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
        return _create(deployment, record, _why_none_is_left(classifications, goal), context)
    current = min(alive, key=lambda j: _rank(deployment, j))
    hands_over = fits(deployment, current.attempt) and is_handed_over(deployment, current.attempt)
    fields = tuple(field_changes(deployment, current.attempt))
    action, reason = _action(deployment, current, fields, context)
    boots_anew = ""
    if action is Action.REPLACE and any(matches(deployment, j.attempt) for j in alive):
        reason = Reason.RESUMES  # its replacement was asked for already
        boots_anew = next((j.attempt.name for j in alive if _did_not_come_up(deployment, j, context)), "")
    if action is Action.NO_OP and len(classifications) > 1:
        action, reason = Action.UPDATE, Reason.LEFTOVER
    return Change(
        deployment=deployment.name,
        replica=record.index,
        action=action,
        reason=reason,
        fields=fields,
        unchanged=len(deployment.attributes) - sum(1 for f in fields if f.path in deployment.attributes),
        slice_name=current.attempt.name,
        zone=current.attempt.zone,
        create_before_destroy=hands_over or deployment.lifecycle.create_before_destroy,
        hands_over=hands_over,
        boots_anew=boots_anew,
        run_ends_at=run_end(current.attempt, context) if hands_over and current.attempt.is_ending else None,
        usd_per_hour_before=prices.usd_per_hour(current.attempt),
        usd_per_hour_after=_first_price(deployment)
        if action is Action.REPLACE
        else prices.usd_per_hour(current.attempt),
        usd_per_hour_most=_most(deployment) if action is Action.REPLACE else None,
        **(_at_once(deployment, context, beside=current.attempt) if action is Action.REPLACE else {}),
        max_run_seconds=deployment.max_run_seconds if action is Action.REPLACE else None,
        before=current.attempt.spec,
        after=desired_attributes(deployment, current.attempt),
    )


def _action(
    deployment: Deployment, current: Classification, fields: tuple[FieldChange, ...], context: DecisionContext
) -> tuple[Action, Reason]:
    effects = {f.effect for f in fields}
    if Effect.REPLACE in effects or not matches(deployment, current.attempt):
        return Action.REPLACE, _why_another(deployment, current)
    if current.status is not AttemptStatus.UP:
        return Action.CREATE, Reason.RESUMES
    if Effect.RESTART in effects:
        return Action.RESTART, Reason.NONE
    standing = ServerStatus(deployment=deployment, replica=0, attempt=current.attempt, context=context)
    if standing.must_restart():
        is_other = current.attempt.boot.server not in {standing.desired_server, server_print(current.attempt.spec)}
        return Action.RESTART, Reason.DRIFTED if is_other else Reason.RESUMES
    if not current.attempt.is_announced:
        return (Action.RESTART, Reason.FAILED) if standing.failure() else (Action.CREATE, Reason.RESUMES)
    if fields:
        return Action.UPDATE, Reason.NONE
    is_told = standing.has_current_metadata() or standing.has_recent_update()
    return (Action.NO_OP, Reason.NONE) if is_told else (Action.UPDATE, Reason.DRIFTED)


def _why_another(deployment: Deployment, current: Classification) -> Reason:
    if current.attempt.is_to_go:
        return Reason.REQUESTED
    if not fits(deployment, current.attempt):
        return Reason.NONE
    return Reason.BLUE_GREEN if is_blue_green_change(deployment, current.attempt) else Reason.RENEWS


def _did_not_come_up(deployment: Deployment, classification: Classification, context: DecisionContext) -> bool:
    """Whether it is what is wanted, and its server has failed as it is."""
    if (
        classification.status is not AttemptStatus.UP
        or classification.attempt.is_announced
        or not matches(deployment, classification.attempt)
    ):
        return False
    standing = ServerStatus(deployment=deployment, replica=0, attempt=classification.attempt, context=context)
    return not standing.must_restart() and bool(standing.failure())


def _why_none_is_left(classifications: list[Classification], goal: Approval | None) -> Reason:
    """Return why a replica has to be asked for: whether its slice was taken away, or an earlier run gave it up."""
    granted = [j for j in classifications if j.attempt.granted_at is not None]
    is_ours = all(j.attempt.releasing_at is not None for j in granted)
    if (
        goal is not None
        and goal.is_removal
        and any(j.attempt.releasing_at is not None for j in classifications)
        and is_ours
    ):
        return Reason.DESTROYED
    if classifications and is_ours:
        # Nothing was granted yet, or an earlier run gave up what was: it had yet to ask for the next one.
        return Reason.RESUMES
    if not classifications:
        return Reason.NONE
    return Reason.GONE if all(map(_was_deleted, classifications)) else Reason.LOST


def _was_deleted(classification: Classification) -> bool:
    """Return whether somebody deleted a slice, or is deleting it at this moment: Google itself only suspends one."""
    return classification.status is AttemptStatus.GONE or (
        classification.slice is not None and classification.slice.phase is Phase.LEAVING
    )


def _create(deployment: Deployment, record: Record, reason: Reason, context: DecisionContext) -> Change:
    after = deployment.attributes
    return Change(
        deployment=deployment.name,
        replica=record.index,
        action=Action.CREATE,
        reason=reason,
        fields=tuple(
            FieldChange(path=p, before=None, after=v, effect=effect(p), origin=deployment.origin(p))
            for p, v in after.items()
        ),
        usd_per_hour_after=_first_price(deployment),
        usd_per_hour_most=_most(deployment),
        **_at_once(deployment, context),
        max_run_seconds=deployment.max_run_seconds,
        after=after,
    )


def _unwanted(name: str, record: Record, context: DecisionContext, reason: Reason) -> Change:
    classifications = [classify(a, context) for a in record.attempts]
    current = min(
        classifications, key=lambda j: list(AttemptStatus).index(j.status) if j.status is not AttemptStatus.UP else -1
    )
    return Change(
        deployment=name,
        replica=record.index,
        action=Action.DESTROY,
        reason=reason,
        fields=tuple(
            FieldChange(path=p, before=v, after=None, effect=Effect.REPLACE) for p, v in current.attempt.spec.items()
        ),
        slice_name=current.attempt.name,
        zone=current.attempt.zone,
        usd_per_hour_before=prices.usd_per_hour(current.attempt) if current.attempt.granted_at is not None else None,
        before=current.attempt.spec,
    )


def _first_price(deployment: Deployment) -> float | None:
    return prices.usd_per_hour_at(deployment, next(iter(deployment.candidates), None))


def _most(deployment: Deployment) -> float | None:
    known = [p for c in deployment.candidates if (p := prices.usd_per_hour_at(deployment, c)) is not None]
    return max(known, default=None)


def _at_once(deployment: Deployment, context: DecisionContext, *, beside: Attempt | None = None) -> dict[str, Any]:
    """What may be billed at one time, beside a slice that goes only once another one serves, and for how long."""
    count, usd = prices.most_slices_at_once(deployment)
    if beside is not None and (deployment.lifecycle.create_before_destroy or is_handed_over(deployment, beside)):
        old = prices.usd_per_hour(beside)
        count, usd = count + 1, None if usd is None or old is None else usd + old
    seconds = context.patience.poll_most + context.patience.deletion
    return {"slices_at_once": count, "usd_per_hour_at_once": usd, "seconds_at_once": seconds}


def _rank(deployment: Deployment, classification: Classification) -> tuple[bool, bool, bool, str]:
    """The slice to speak of: one that would be given up first, then one that clients have not left, that stands."""
    has_left = classification.attempt.draining_at is not None
    return (
        matches(deployment, classification.attempt),
        has_left,
        classification.status is not AttemptStatus.UP,
        classification.attempt.name,
    )
