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
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.found import Found
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal, Plan, Reason
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import State
from tpudeploy.engine.look import Sight, look_at_all, states_of
from tpudeploy.engine.lost import remembered, search
from tpudeploy.engine.retry import looking_again
from tpudeploy.ports import World


def plan(world: World, deployments: Iterable[Deployment], *, destroy: bool = False, adopt: bool = False) -> Plan:
    """With `adopt`, slices that no state remembers are taken over; without, they are an error among the diagnostics.

    Raise `errors.Fault` where the cloud does not answer, `errors.StateError` where a state cannot be read, and
    `errors.ConfigError` where two deployments have one name.

    A plan that a lifecycle rule forbids is a plan with an error among its diagnostics.
    """
    known = named_once(deployments)
    states = states_of(world, [d.name for d in known])
    found = search(world, [d for d in known if states[d.name] is None])
    parts = [
        _part(world, d, states[d.name], found.found.get(d.name, ()), destroy=destroy, adopt=adopt and not destroy)
        for d in known
    ]
    goals = tuple(_goals(world, [part for part, _ in parts]))
    stray = (said for _, diagnostics in parts for said in diagnostics)
    warnings = () if destroy else check(known)
    return Plan(goals=goals, diagnostics=(*_prevented(known, goals), *stray, *found.diagnostics, *warnings))


def named_once(deployments: Iterable[Deployment]) -> tuple[Deployment, ...]:
    """Themselves. Raise `errors.ConfigError` where two of them have one name."""
    known = tuple(deployments)
    twice = [name for name, times in Counter(d.name for d in known).items() if times > 1]
    if twice:
        raise ConfigError(
            f"Several profiles are called {twice[0]}.",
            hint="A deployment is known by its name: give each profile its own, or name this one once.",
        )
    return known


@frozen
class _Part:
    """One deployment before the look: what is aimed at, what is remembered. `adopts` are the slices it begins with."""

    name: str
    aim: Deployment | None
    known: State
    adopts: tuple[str, ...] = ()


def _part(
    world: World,
    deployment: Deployment,
    state: State | None,
    found: tuple[Found, ...],
    *,
    destroy: bool,
    adopt: bool,
) -> tuple[_Part, tuple[Diagnostic, ...]]:
    """Its part, and what is to be said of slices that its goal leaves alone."""
    name, aim = deployment.name, None if destroy else deployment
    nothing = State(deployment=name, lineage="")
    if state is None and found:
        state = world.state.read(name).state  # remembered by now, perhaps, whatever was found before
    if state is not None or not found:
        return _Part(name=name, aim=aim, known=state or nothing), ()
    chosen = adoptable(found) if adopt else ()
    left = tuple(unremembered(deployment, [f for f in found if f not in chosen], destroy=destroy))
    if not chosen:
        return _Part(name=name, aim=aim, known=nothing), left
    known = remembered(world, nothing, deployment, chosen)
    return _Part(name=name, aim=aim, known=known, adopts=tuple(f.ref.name for f in chosen)), left


def goal(
    world: World, name: str, deployment: Deployment | None, state: State | None, *, adopts: tuple[str, ...] = ()
) -> Goal:
    """One deployment's part, from one look. `deployment` is None where it is to be removed."""
    known = state if state is not None else State(deployment=name, lineage="")
    return next(_goals(world, [_Part(name=name, aim=deployment, known=known, adopts=adopts)]))


def _goals(world: World, parts: list[_Part]) -> Iterator[Goal]:
    """From one look at all of them."""
    sights = [Sight(state=part.known, deployment=part.aim) for part in parts]
    if not sights:
        return
    name = parts[0].name if len(parts) == 1 else f"{len(parts)} deployments"
    budget = world.patience.faults_at_plan
    looked = looking_again(world, name, lambda: look_at_all(world, sights, anew=False), budget=budget)
    yield from (_goal(world, part, observed) for part, observed in zip(parts, looked, strict=True))


def _goal(world: World, part: _Part, observed: Observed) -> Goal:
    known, aim = part.known, "" if part.aim is None else fingerprint(part.aim)
    if part.adopts:
        known = remember(known, observed)  # else a slice that serves would have yet to come up
    moment = Moment(observed=observed, patience=world.patience)
    would = removals(part.name, known, moment) if part.aim is None else changes(part.aim, known, moment)
    would = tuple(_adopting(change) if change.slice_name in part.adopts else change for change in would)
    # A plan without changes needs no yes, but it does end what an earlier yes began.
    is_covered = known.goal is not None and (known.goal.fingerprint == aim or not any(map(_is_change, would)))
    return Goal(
        name=part.name,
        deployment=part.aim,
        fingerprint=aim,
        lineage=known.lineage,
        serial=known.serial,
        resumes=is_covered,
        changes=would,
        adopts=part.adopts,
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
