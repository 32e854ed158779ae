"""State and world, looked at once, against what is wanted: a Plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tpudeploy.core.adopt import adoptable
from tpudeploy.core.checks import check
from tpudeploy.core.diff import changes, removals
from tpudeploy.core.fate import Moment
from tpudeploy.core.fingerprint import fingerprint
from tpudeploy.core.lost import unremembered
from tpudeploy.core.remember import remember
from tpudeploy.core.seen import seen
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.found import Found
from tpudeploy.domain.plan import Action, Change, Goal, Mode, Plan, Reason
from tpudeploy.domain.state import State
from tpudeploy.engine.look import look
from tpudeploy.engine.lost import remembered, search
from tpudeploy.engine.retry import looking_again
from tpudeploy.ports import World


def plan(world: World, deployments: Iterable[Deployment], *, destroy: bool = False, adopt: bool = False) -> Plan:
    """With `adopt`, slices that no state remembers are taken over; without, they are an error among the diagnostics.

    Raise `errors.Fault` where the cloud does not answer, `errors.StateError` where a state cannot be read, and
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
    found = search(world, [d for d in known if world.state.read(d.name).state is None])
    parts = [_part(world, d, found.found.get(d.name, ()), destroy=destroy, adopt=adopt and not destroy) for d in known]
    goals = tuple(each for each, _ in parts)
    stray = (said for _, diagnostics in parts for said in diagnostics)
    warnings = () if destroy else check(known)
    return Plan(
        goals=goals,
        diagnostics=(*_prevented(known, goals), *stray, *found.diagnostics, *warnings),
        mode=Mode.DESTROY if destroy else Mode.NORMAL,
        made_at=world.clock.now(),
    )


def _part(
    world: World, deployment: Deployment, found: tuple[Found, ...], *, destroy: bool, adopt: bool
) -> tuple[Goal, tuple[Diagnostic, ...]]:
    """Its goal, and what is to be said of slices that its goal leaves alone."""
    name, aim = deployment.name, None if destroy else deployment
    state = world.state.read(name).state
    if state is not None or not found:
        return goal(world, name, aim, state), ()  # remembered by now, whatever was found before
    chosen = adoptable(found) if adopt else ()
    left = tuple(unremembered(deployment, [f for f in found if f not in chosen], destroy=destroy))
    if not chosen:
        return goal(world, name, aim, None), left
    known = remembered(world, State(deployment=name, lineage=""), deployment, chosen)
    return goal(world, name, aim, known, adopts=tuple(f.ref.name for f in chosen)), left


def goal(
    world: World, name: str, deployment: Deployment | None, state: State | None, *, adopts: tuple[str, ...] = ()
) -> Goal:
    """One deployment's part, from one look. `deployment` is None where it is to be removed."""
    known = state if state is not None else State(deployment=name, lineage="")
    aim = "" if deployment is None else fingerprint(deployment)
    budget = world.patience.faults_at_plan
    observed = looking_again(world, name, lambda: look(world, known, deployment, anew=False), budget=budget)
    if adopts:
        known = remember(known, observed)  # else a slice that serves would have yet to come up
    moment = Moment(observed=observed, patience=world.patience)
    would = removals(name, known, moment) if deployment is None else changes(deployment, known, moment)
    would = tuple(_adopting(change) if change.slice_name in adopts else change for change in would)
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
        adopts=adopts,
        seen=seen(known, moment, would),
    )


def _adopting(change: Change) -> Change:
    """To be remembered is a change, if nothing else is."""
    action = Action.UPDATE if change.action is Action.NO_OP else change.action
    return replace(change, action=action, reason=Reason.ADOPTED)


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
