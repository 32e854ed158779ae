"""What the world is, beside what was applied: found by `-refresh-only`, and written down. Nothing is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.plan import Action, Drift, DriftKind, Goal, Plan, stopped_by
from tpudeploy.domain.report import Outcome, Report
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.engine.look import observe
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import open_session
from tpudeploy.engine.verify import Server, serving, verify_as_applied
from tpudeploy.node.fingerprint import aim_print
from tpudeploy.planning.drift import drift, ineffective, missing, recorded
from tpudeploy.planning.targets import Targets, within
from tpudeploy.ports import VerifySources, World
from tpudeploy.reconcile.fate import Moment


def observation(
    world: World,
    deployment: Deployment,
    state: State,
    targets: Targets,
    observed: Observed,
    *,
    sources: VerifySources | None = None,
) -> Goal:
    """Return the differences that one look shows; with `sources`, those between a server and its settings as well."""
    moment = Moment(observed=observed, patience=world.patience)
    found = (*drift(state, moment), *missing(deployment, state, moment))
    if sources is not None:
        found = (*found, *_not_in_effect(world, sources, deployment, serving(state, observed)))
    return Goal(
        name=deployment.name,
        deployment=deployment,
        fingerprint=aim_print(deployment, targets),
        lineage=state.lineage,
        serial=state.serial,
        resumes=False,
        changes=(),
        drift=within(targets, found),
        targets=targets,
    )


def _not_in_effect(
    world: World, sources: VerifySources, deployment: Deployment, servers: Sequence[Server]
) -> Iterator[Drift]:
    told = together(world.threads, lambda server: verify_as_applied(sources, deployment, server), servers)
    for server, found in zip(servers, told, strict=True):
        if found.broken:
            yield ineffective(deployment.name, server.replica, server.attempt, found)


def record(world: World, plan: Plan) -> Report:
    """Write down what `plan` found. What goes wrong with one of several deployments is its outcome.

    Raise what goes wrong with a single one, `errors.StalePlan` where the world or a state has moved on since.
    """
    goals = [g for g in plan.goals if g.errors or any(d.kind is not DriftKind.MISSING for d in g.drift)]
    if len(plan.goals) == 1:
        for goal in goals:
            _record(world, goal, plan.source)
        return Report(outcomes=())
    failures: list[Outcome] = []
    for goal in goals:
        try:
            _record(world, goal, plan.source)
        except errors.Interrupted:
            raise
        except errors.TpudeployError as error:
            failures.append(Outcome(address=goal.name, action=Action.NO_OP, error=error))
    return Report(outcomes=tuple(failures))


def _record(world: World, goal: Goal, source: str) -> None:
    if goal.errors:
        raise stopped_by(goal.errors[0])
    deployment = goal.deployment
    if deployment is None:
        return
    with open_session(world, goal.name, "refresh") as held:
        state, budget = held.state, world.patience.faults_at_plan
        observed = retry_on_fault(world, goal.name, lambda: observe(world, state, deployment), budget=budget)
        current = observation(world, deployment, state, goal.targets, observed)
        has_moved = (state.lineage, state.serial) != (goal.lineage, goal.serial)
        if current.drift != goal.drift or (source and has_moved):
            raise errors.StalePlan(
                f"What was found of {goal.name} is no longer so.", hint="Run the command again to see what is."
            )
        held.save(recorded(state, current.drift))
