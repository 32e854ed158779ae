"""Refresh: the drift that `-refresh-only` shows and records. Nothing in the cloud is changed.

Why: decision 26 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.names import address
from tpudeploy.domain.plan import Action, Goal, Plan, SliceDrift, stopped_by
from tpudeploy.domain.report import ReplicaOutcome, RunReport
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.engine.observe import not_observed, observe
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import open_session
from tpudeploy.engine.verify import VerifiedServer, serving, verify_as_applied
from tpudeploy.node.fingerprint import aim_print
from tpudeploy.planning.drift import drift, ineffective, missing, recorded
from tpudeploy.planning.targets import Targets, only_targets
from tpudeploy.ports import VerifySources, World
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.ends import until_end
from tpudeploy.reconcile.replicas import with_replicas


def observation(
    world: World,
    deployment: Deployment,
    state: State,
    targets: Targets,
    observed: Observed,
    *,
    sources: VerifySources | None = None,
) -> Goal:
    """Return the drift that one observation shows, with `sources` also that of the servers' settings."""
    # What has ended has no replicas, so none of them is missing.
    deployment = with_replicas(until_end(deployment, state, observed), state, observed)
    context = DecisionContext(observed=observed, patience=world.patience)
    drifts = [*drift(state, context), *missing(deployment, state, context)]
    problems: tuple[Diagnostic, ...] = ()
    if sources is not None:
        problems = tuple(_unobserved(state, targets, observed))
        drifts += _settings_drift(world, sources, deployment, serving(state, observed))
    return Goal(
        name=deployment.name,
        deployment=deployment,
        fingerprint=aim_print(deployment, targets),
        lineage=state.lineage,
        serial=state.serial,
        resumes=False,
        changes=(),
        drift=only_targets(targets, drifts),
        targets=targets,
        errors=problems,
    )


def _unobserved(state: State, targets: Targets, observed: Observed) -> Iterator[Diagnostic]:
    """Yield an error for each server that was reached and gave no answer: whether it has drifted is unknown."""
    for index, attempt in state.indexed_attempts:
        health = observed.health.get(attempt.name)
        if health is not None and health.serving and health.silence and (targets is None or index in targets):
            error = not_observed(address(state.deployment, index), health)
            yield Diagnostic(code=error.code, message=error.message, hint=error.hint)


def _settings_drift(
    world: World, sources: VerifySources, deployment: Deployment, servers: Sequence[VerifiedServer]
) -> Iterator[SliceDrift]:
    results = together(world.threads, lambda server: verify_as_applied(sources, deployment, server), servers)
    for server, result in zip(servers, results, strict=True):
        if result.broken:
            yield ineffective(deployment.name, server.replica, server.attempt, result)


def record(world: World, plan: Plan) -> RunReport:
    """Record the drift of `plan` in the states. The error of one of several deployments is its outcome.

    Raise the error of a single one, `errors.StalePlan` if the world or a state has changed since.
    """
    goals = [goal for goal in plan.goals if goal.errors or any(d.is_news for d in goal.drift)]
    failures: list[ReplicaOutcome] = []
    for goal in goals:
        try:
            _record(world, goal, plan.source)
        except errors.TpudeployError as error:
            if len(plan.goals) == 1 or isinstance(error, errors.Interrupted):
                raise
            failures.append(ReplicaOutcome(address=goal.name, action=Action.NO_OP, error=error))
    return RunReport(outcomes=tuple(failures))


def _record(world: World, goal: Goal, source: str) -> None:
    if goal.errors:
        raise stopped_by(goal.errors[0])
    deployment = goal.deployment
    if deployment is None:
        return
    with open_session(world, goal.name, "refresh") as session:
        state = session.state
        observed = retry_on_fault(world, goal.name, lambda: observe(world, state, deployment))
        current = observation(world, deployment, state, goal.targets, observed)
        has_moved = (state.lineage, state.serial) != (goal.lineage, goal.serial)
        if current.drift != goal.drift or (source and has_moved):
            raise errors.StalePlan(
                f"The drift of {goal.name} is no longer what the plan showed.",
                hint="Run the command again to see the current drift.",
            )
        session.save(recorded(state, current.drift))
