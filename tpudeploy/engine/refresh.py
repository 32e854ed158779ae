"""What the world is, beside what was applied: found by `-refresh-only`, and written down. Nothing is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.core.drift import drift, ineffective, missing, recorded
from tpudeploy.core.fate import Moment
from tpudeploy.core.fingerprint import aim_print
from tpudeploy.core.targets import Targets, within
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.plan import Drift, DriftKind, Goal, Plan
from tpudeploy.domain.report import Report
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.engine.attest import Server, applied, serving
from tpudeploy.engine.look import look
from tpudeploy.engine.retry import looking_again
from tpudeploy.engine.session import session
from tpudeploy.ports import Witnesses, World


def observation(
    world: World, deployment: Deployment, state: State, targets: Targets, *, witnesses: Witnesses | None = None
) -> Goal:
    """One look, endpoints asked anew; with `witnesses`, what serves is held against what it was given as well.

    Raise `errors.Fault`.
    """
    budget = world.patience.faults_at_plan
    observed = looking_again(world, deployment.name, lambda: look(world, state, deployment), budget=budget)
    moment = Moment(observed=observed, patience=world.patience)
    found = (*drift(state, moment), *missing(deployment, state, moment))
    if witnesses is not None:
        found = (*found, *_not_in_effect(world, witnesses, deployment, serving(state, observed)))
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
    world: World, witnesses: Witnesses, deployment: Deployment, servers: Sequence[Server]
) -> Iterator[Drift]:
    told = together(world.threads, lambda server: applied(witnesses, deployment, server), servers)
    for server, found in zip(servers, told, strict=True):
        if found.broken:
            yield ineffective(deployment.name, server.replica, server.attempt, found)


def record(world: World, plan: Plan) -> Report:
    """Write down what `plan` found. Raise `errors.StalePlan` where the world or a state has moved on since."""
    for goal in plan.goals:
        if any(d.kind is not DriftKind.MISSING for d in goal.drift) and goal.deployment is not None:
            _record(world, goal, goal.deployment, plan.source)
    return Report(outcomes=())


def _record(world: World, goal: Goal, deployment: Deployment, source: str) -> None:
    with session(world, goal.name, "refresh") as held:
        current = observation(world, deployment, held.state, goal.targets)
        has_moved = (held.state.lineage, held.state.serial) != (goal.lineage, goal.serial)
        if current.drift != goal.drift or (source and has_moved):
            raise errors.StalePlan(
                f"What was found of {goal.name} is no longer so.", hint="Run the command again to see what is."
            )
        held.save(recorded(held.state, current.drift))
