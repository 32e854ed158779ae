"""Cutover without a lost request: when another slice takes over from one that serves, and when the old one may go.

    request ─▶ it serves ─▶ its endpoint is published ─▶ the old slice drains ─▶ the old slice is released

`update: blue-green` does this for a serving change, `on_run_end: renew` for a run that ends. A slice that is replaced
drains likewise.

Why: decisions 42, 43 and 44 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tpudeploy.config.scalars import Duration
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import GivenUpUpdate, ServingError
from tpudeploy.domain.names import address
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.state import Attempt, State
from tpudeploy.node.fingerprint import server_print
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import AttemptStatus, Classification, DecisionContext, classify
from tpudeploy.reconcile.desired import desired_attributes
from tpudeploy.reconcile.readiness import answers
from tpudeploy.reconcile.rollout import ServerStatus, remedy

_HOUR = 3600.0
# The share of a run that a successor may cut short. With more, a short run would have a successor from its start on.
_LONGEST_LEAD = 0.5


def is_handed_over(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether a second slice replaces one that could stay, whatever `lifecycle.replace` says."""
    return is_blue_green_change(deployment, attempt) or (attempt.is_ending and deployment.lifecycle.renew)


def is_blue_green_change(deployment: Deployment, attempt: Attempt) -> bool:
    """Return whether a slice that clients may use runs another server than the profile's, and must keep it."""
    # No client has an endpoint that was never published, so its server is replaced in place.
    if not deployment.lifecycle.blue_green or not attempt.is_announced:
        return False
    # A restart that was saved and not requested has not ended the previous server.
    return not attempt.boot.is_sent or attempt.boot.server != server_print(desired_attributes(deployment, attempt))


def with_drain(patience: Patience, deployment: Deployment | None, state: State) -> Patience:
    """Return the waiting times with the longest drain that the profile sets, or that it set for what is removed."""
    if deployment is not None:
        seconds = deployment.lifecycle.drain_seconds
    else:
        limits = (attempt.spec.get("lifecycle.drain_timeout") for attempt in state.attempts)
        seconds = max((Duration.parse(str(limit)) for limit in limits if limit is not None), default=None)
    return patience if seconds is None else replace(patience, drained=seconds)


def drain_seconds_left(attempt: Attempt, context: DecisionContext) -> float:
    """Return the seconds until a slice that clients were sent away from may go, at most; 0 once no client can miss it.

    After `Patience.drain` no client uses its endpoint any more. Requests that it still runs then get more time.
    """
    patience = context.patience
    seconds_drained = 0.0 if attempt.draining_at is None else context.now - attempt.draining_at
    limit = 0.0 if _is_idle(attempt, context) else patience.drained
    return max(0.0, max(limit, patience.drain) - seconds_drained)


def _is_idle(attempt: Attempt, context: DecisionContext) -> bool:
    """Return whether a slice certainly works on no request."""
    running = context.observed.requests(attempt.name)
    if running is not None:
        return running == 0
    # Its metrics cannot be read, for example because only its machine reaches them. A server that answers may be busy.
    return not answers(attempt.name, context.observed)


def can_take_clients(classification: Classification, context: DecisionContext) -> bool:
    """Return whether clients can be sent there: it is up, was published before, and answers."""
    attempt = classification.attempt
    return classification.status is AttemptStatus.UP and attempt.is_announced and context.observed.serves(attempt.name)


def run_end(attempt: Attempt, context: DecisionContext) -> float | None:
    """Return when Google ends the run of a slice, in seconds since the epoch, or None for a run without an end."""
    current = context.observed.slices.get(attempt.name)
    if current is not None and current.ends_at is not None:
        return current.ends_at
    # Google does not say it. The look that found the grant may have been late, and so is this end.
    hours = prices.run_hours(attempt)
    return None if hours is None or attempt.granted_at is None else attempt.granted_at + hours * _HOUR


def ends_within_drain(attempt: Attempt, context: DecisionContext) -> bool:
    """Return whether Google ends the run of a slice before, or soon after, the requests that it may still run end."""
    ends = run_end(attempt, context)
    return ends is not None and context.now >= ends - context.patience.drained - context.patience.drain


def needs_successor(deployment: Deployment, attempt: Attempt, context: DecisionContext) -> bool:
    """Return whether a successor has to be requested now, to take over before the run ends."""
    ends, hours = run_end(attempt, context), prices.run_hours(attempt)
    # Renewal is off, no client uses the slice, or its run does not end.
    if not deployment.lifecycle.renew or not attempt.is_announced or ends is None or hours is None:
        return False
    return context.now >= ends - min(_lead_seconds(deployment, context), _LONGEST_LEAD * hours * _HOUR)


def _lead_seconds(deployment: Deployment, context: DecisionContext) -> float:
    """Return the seconds that a cutover takes: the wait for a slice, the start and the drain."""
    budget = deployment.budget
    start = budget.start.cold_seconds if isinstance(budget, HbmBudget) else deployment.health.timeout_seconds
    wait = max(context.patience.acquisition, context.acquisition)
    return wait + start + context.patience.drained


def failed_cutover(standing: ServerStatus, old: Attempt, *, cause: str) -> ServingError:
    """Return the error for a slice that does not serve, while the slice that it should replace still does.

    Both are kept: the chips of the new one are as scarce as any, and the next apply continues with them.
    """
    deployment, attempt = standing.deployment, standing.attempt
    new_price, old_price = prices.usd_per_hour(attempt), prices.usd_per_hour(old)
    if new_price is None or old_price is None:
        cost = "at an unknown price"
    else:
        cost = f"at about ${new_price + old_price:.2f}/h together"
    where = address(deployment.name, standing.replica)
    if is_blue_green_change(deployment, old):
        next_step = (
            "Fix the cause and run `tpudeploy apply` again: it continues with the new one. Undo the change instead, "
            "and it releases the new one."
        )
    else:
        next_step = "Run `tpudeploy apply` again: it starts the new one again, as the profile then says."
    return GivenUpUpdate(
        f"{where} does not serve on its new slice: {cause}\n{where} serves as before: {old.name} was not changed,"
        " and clients are still sent there.",
        hint=f"{remedy(deployment, cause)}The new slice {attempt.name} in {attempt.zone} is kept. Both are billed, "
        f"{cost}.\n{next_step}",
    )


def slices_needing_successors(deployment: Deployment, state: State, context: DecisionContext) -> tuple[str, ...]:
    """Return the names of the slices for which a successor has to be requested now."""
    up = [attempt for attempt in state.slice_attempts if classify(attempt, context).status is AttemptStatus.UP]
    serving = [attempt for attempt in up if attempt.draining_at is None]
    return tuple(a.name for a in serving if a.is_ending or needs_successor(deployment, a, context))


def mark_as_ending(state: State, names: Collection[str]) -> State:
    """Return `state` in which a successor may be requested for each of these slices."""
    for record in state.records:
        for attempt in record.attempts:
            if attempt.name in names and not attempt.is_ending:
                record = record.with_attempt(replace(attempt, is_ending=True))  # noqa: PLW2901 - one after the other
        state = state.with_record(record)
    return state
