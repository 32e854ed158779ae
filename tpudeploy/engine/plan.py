"""State and world, looked at once, against what is wanted: a Plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tpudeploy.core.checks import check
from tpudeploy.core.diff import changes, removals
from tpudeploy.core.fate import Moment
from tpudeploy.core.fingerprint import fingerprint
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.plan import Action, Change, Goal, Plan
from tpudeploy.domain.state import State
from tpudeploy.engine.look import look
from tpudeploy.engine.retry import looking_again
from tpudeploy.ports import World


def plan(world: World, deployments: Iterable[Deployment], *, destroy: bool = False) -> Plan:
    """Raise `errors.Fault` where the cloud does not answer, `errors.StateError` where a state cannot be read, and
    `errors.ConfigError` where two deployments have one name.

    A plan that a lifecycle rule forbids is a plan with an error among its diagnostics.
    """
    known = tuple(deployments)
    twice = [name for name, times in Counter(d.name for d in known).items() if times > 1]
    if twice:
        raise ConfigError(
            f"Several profiles are called {twice[0]}.",
            hint="A deployment is known by its name: give each profile its own, or name this one once.",
        )
    goals = tuple(goal(world, d.name, None if destroy else d, world.state.read(d.name).state) for d in known)
    warnings = () if destroy else check(known)
    return Plan(goals=goals, diagnostics=(*_prevented(known, goals), *warnings))


def goal(world: World, name: str, deployment: Deployment | None, state: State | None) -> Goal:
    """One deployment's part, from one look. `deployment` is None where it is to be removed."""
    known = state if state is not None else State(deployment=name, lineage="")
    aim = "" if deployment is None else fingerprint(deployment)
    budget = world.patience.faults_at_plan
    observed = looking_again(world, name, lambda: look(world, known, deployment, anew=False), budget=budget)
    moment = Moment(observed=observed, patience=world.patience)
    would = removals(name, known, moment) if deployment is None else changes(deployment, known, moment)
    # A plan without changes needs no yes, but it does end what an earlier yes began.
    is_covered = known.goal is not None and (known.goal.fingerprint == aim or not any(map(_is_change, would)))
    return Goal(
        name=name,
        deployment=deployment,
        fingerprint=aim,
        lineage=known.lineage,
        serial=known.serial,
        resumes=is_covered,
        changes=would,
    )


def _is_change(change: Change) -> bool:
    return change.action is not Action.NO_OP


def _prevented(deployments: Iterable[Deployment], goals: Iterable[Goal]) -> Iterator[Diagnostic]:
    names = {d.name: d for d in deployments if d.lifecycle.prevent_destroy}
    for each in goals:
        for change in each.changes:
            if each.name in names and change.action in {Action.DESTROY, Action.REPLACE}:
                yield Diagnostic(
                    code="TPU3002",
                    message=f"{change.address} may not be destroyed, but this plan would {change.action} it.",
                    path="lifecycle.prevent_destroy",
                    location=names[each.name].origins.get("lifecycle.prevent_destroy"),
                    hint="Set lifecycle.prevent_destroy to false first, or undo the change that forces it.",
                )
