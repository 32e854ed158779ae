"""Create or update the deployments in PROFILE, wait until each one answers a completion, and print its endpoint.

An interrupted run is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from tpudeploy.config.scalars import MOST_SECONDS, Duration
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.events import Event
from tpudeploy.domain.plan import Mode, Plan
from tpudeploy.domain.report import Wait
from tpudeploy.engine import apply as engine
from tpudeploy.engine.pins import hold, note_releases
from tpudeploy.engine.refresh import record
from tpudeploy.operations.arguments import Agents, Arg, NamesProfiles, TimeLimit, Usd, pick
from tpudeploy.operations.companions import accompanied, companions_of, heard_by
from tpudeploy.operations.declaration import Access, ApprovalForm, Operation
from tpudeploy.operations.plan import plan as make_plan
from tpudeploy.pins import digest_in, in_attributes
from tpudeploy.plans import Report
from tpudeploy.workspace import Workspace

_WAITS = tuple(str(wait) for wait in Wait)


def apply(
    workspace: Workspace,
    plan: Annotated[Plan, NamesProfiles.OR_PLAN, Arg()],
    *,
    wait: Annotated[
        Wait | str,
        Arg("How far to wait: accepted, granted or serving.", choices=_WAITS, agents=Agents("how far to go")),
    ] = Wait.SERVING,
    timeout: Annotated[
        TimeLimit | str | None,
        Arg(
            "Stop waiting after this time, e.g. 2h (exit 12).",
            metavar="TIMEOUT",
            agents=Agents("give up waiting after this long"),
        ),
    ] = None,
    max_cost: Annotated[
        Usd | CostCeiling | None,
        Arg("Request nothing by which these deployments could cost more than this many USD from now on (exit 13)."),
    ] = None,
    watch: Annotated[bool, Arg("Keep running afterwards and replace preempted slices until interrupted.")] = False,
    reset: bool = False,
    max_requests: int | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Report:
    """Apply a plan; `timeout` is in seconds, or "90m". Failures of single deployments are in the report.

    With `reset`, a running node that does not pick up a change within three minutes is rebooted; without, it keeps its
    server, and `errors.ChangeNotAcknowledged` is the outcome.

    Each deployment requests at most `max_requests` slices, however many are refused or lost. One that has no slice then
    has `errors.CapacityTimeout` as its outcome.

    With `max_cost`, nothing is requested by which the deployments of the plan could cost more than that many USD from
    now on, each slice until its end; a `CostCeiling` says since when, and for which deployments together. Then
    `errors.BudgetExceeded` is the outcome, and what runs is untouched.

    With `watch`, the call continues once everything serves: preempted slices are requested again, until `stop` is
    called from another thread (then `errors.Interrupted` is raised) or a deployment fails for good.

    Raise `errors.CheckFailed` if a check forbids the whole plan; a check that forbids one of several deployments is
    the outcome of that deployment. A plan that no longer holds is the outcome of its deployment; for a single one, and
    for a plan that was loaded from a file, `errors.StalePlan` is raised. A plan from a file holds only for the state
    and the slices that it was made for.
    """
    if not isinstance(plan, Plan):
        raise UsageError(
            f"`apply` takes a plan, and got {_kind(plan)}.",
            hint="Make one, and look at it: plan = workspace.plan([profile]); then workspace.apply(plan).",
        )
    if plan.worst_error is not None and plan.stopping_errors:
        raise plan.worst_error
    adapters = workspace.adapters
    companions = companions_of(adapters, plan)
    world = adapters.world(heard_by(companions, on_event))
    if plan.mode is Mode.REFRESH_ONLY:
        return Report.from_domain(record(world, plan))
    adapters.pins.read()  # an unusable lock file stops the run before anything is started
    pins = [pin for goal in plan.goals if goal.deployment for pin in in_attributes(goal.deployment.attributes)]
    checkpoints = {
        commit: goal.deployment.checkpoint
        for goal in plan.goals
        if goal.deployment
        and goal.deployment.checkpoint
        and isinstance(commit := goal.deployment.attributes.get("model.commit"), str)
    }
    seconds = _seconds(timeout)
    # A run that is kept alive outlives its timeout.
    with adapters.within(None if watch else seconds), accompanied(world, companions):
        report = engine.apply(
            world,
            plan,
            sources=adapters.verify_sources,
            until=Wait(wait),
            timeout=seconds,
            keep=watch,
            may_reset=reset,
            max_requests=max_requests,
            ceiling=_ceiling(max_cost, plan, world.clock.now()),
            on_started=lambda: hold(world, adapters.pins, pins, checkpoints, _labels(plan)),
            beside=companions,
        )
    note_releases(adapters.pins, adapters.boots.read(), [goal.deployment for goal in plan.goals if goal.deployment])
    return Report.from_domain(report)


def _labels(plan: Plan) -> Mapping[str, str]:
    """Return what the labels of the plan's images say of their engines, by digest."""
    deployments = [goal.deployment for goal in plan.goals if goal.deployment]
    return {
        digest: each.engine.labels
        for each in deployments
        if each.engine.labels is not None and (digest := digest_in(each.attributes))
    }


def _ceiling(max_cost: float | CostCeiling | None, plan: Plan, now: float) -> CostCeiling | None:
    if max_cost is None or isinstance(max_cost, CostCeiling):
        return max_cost
    if not max_cost > 0:
        raise UsageError(f"max_cost: {max_cost} is not a number of USD above 0.")
    return CostCeiling(usd=max_cost, since=now, deployments=frozenset(goal.name for goal in plan.goals))


def _kind(thing: object) -> str:
    return f"a {type(thing).__name__}" if not isinstance(thing, list | tuple) else "a list"


def _seconds(timeout: float | str | None) -> float | None:
    """Return a time in seconds. Raise `errors.UsageError` for what is not a duration."""
    if timeout is not None and not isinstance(timeout, str) and not 0 <= timeout <= MOST_SECONDS:
        raise UsageError(
            f"timeout: {timeout} is not a number of seconds.", hint="Write seconds, or 90s, 15m, 2h or 7d."
        )
    if not isinstance(timeout, str):
        return timeout
    try:
        return float(Duration.parse(timeout))
    except ValueError as cause:
        raise UsageError(f"timeout: {cause}.", hint="Write seconds, or 90s, 15m, 2h or 7d.") from cause


OPERATION = Operation(
    run=apply,
    also=pick(make_plan, "adopt", "replace", "start", "refresh_only", "target"),
    results=(Report,),
    access=Access.END,
    title="Apply a plan",
    options=("parallelism", "lock_timeout", "backend", "events"),
    approval=ApprovalForm(
        question="Do you want to perform these actions?",
        otherwise="Review the plan, then pass -auto-approve.",
    ),
)
