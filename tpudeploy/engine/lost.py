"""What deployments without a state have in the cloud: looked for by name and label, lest it be bought twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.found import CloudResource, Listing
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import State
from tpudeploy.engine.about import about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.orphans.adopt import adoptable, adopted
from tpudeploy.orphans.lost import not_looked
from tpudeploy.ports import World


@frozen
class Lost:
    """`found` by deployment, as it stands now. `diagnostics` tell where nobody could look."""

    found: Mapping[str, tuple[CloudResource, ...]]
    diagnostics: tuple[Diagnostic, ...] = ()


def search(world: World, deployments: Iterable[Deployment]) -> Lost:
    """One listing for each project: of deployments without a state only, so that a plan stays quick.

    A listing that fails stops nobody: what it would have shown is named as not known.
    """
    by_project: dict[str, list[Deployment]] = {}
    for each in deployments:
        if each.project is not None:
            by_project.setdefault(each.project, []).append(each)
    found: dict[str, tuple[CloudResource, ...]] = {}
    said: list[Diagnostic] = []
    for project, own in by_project.items():
        names = [d.name for d in own]
        try:
            listing = _listing(world, project, own)
            found |= {name: _standing(world, listing, name) for name in names}
            found = _unnamed(world, found)
        except errors.CloudError as error:
            said.append(not_looked(names, error.message))
            continue
        if listing.unreachable:
            said.append(not_looked(names, f"no answer from {', '.join(listing.unreachable)}."))
    return Lost(found=found, diagnostics=tuple(said))


def _unnamed(world: World, found: Mapping[str, tuple[CloudResource, ...]]) -> dict[str, tuple[CloudResource, ...]]:
    """Without what another state remembers: a deployment that was renamed has slices of its old name.

    What its own remembers stays: that was written while we looked, and has to be read.
    """
    if not any(found.values()):
        return dict(found)
    states = (world.state.read(name).state for name in world.state.names())
    owner = {
        (a.project, a.zone, a.name): state.deployment for state in states if state is not None for a in state.attempts
    }
    return {
        name: tuple(f for f in each if owner.get((f.ref.project, f.ref.zone, f.ref.name), name) == name)
        for name, each in found.items()
    }


def _listing(world: World, project: str, deployments: Iterable[Deployment]) -> Listing:
    zones = dict.fromkeys(c.zone for d in deployments for c in d.candidates)
    look = partial(world.cloud.list_marked, project, tuple(zones), machines=False)
    return retry_on_fault(world, project, look, budget=world.patience.faults_at_plan)


def _standing(world: World, listing: Listing, name: str) -> tuple[CloudResource, ...]:
    """Looked at one by one: a listing does not show the machine."""
    own = [f for f in listing.found if f.mark.deployment == name]
    shown = ((f, world.cloud.slices([f.ref])) for f in own)
    return tuple(replace(f, slice=now[0]) for f, now in shown if now)


def remembered(world: World, state: State, deployment: Deployment, found: Iterable[CloudResource]) -> State:
    """`state` with what can be adopted of `found`. Raise `errors.Fault`."""
    chosen = adoptable(found)
    up = [f.ref for f in chosen if f.slice.phase is Phase.UP]
    said = {ref.name: world.cloud.report(ref) for ref in up}
    reports = {name: report for name, report in said.items() if report is not None}
    return adopted(state, deployment, chosen, reports, world.clock.now())


def with_adopted(world: World, goal: Goal, state: State) -> State:
    """`state` with what `goal` adopts, looked for once more. Itself where nothing is adopted, or somebody has begun.

    Raise `errors.StalePlan` where other slices stand there now than the plan showed.
    """
    if not goal.adopts or goal.deployment is None or state.serial:
        return state
    found = search(world, [goal.deployment]).found.get(goal.name, ())
    if {f.ref.name for f in adoptable(found)} != set(goal.adopts):
        raise errors.StalePlan(
            f"What stands of {goal.name} is no longer what the plan adopts.",
            hint="Run the command again to see and approve a new plan.",
        )
    return remembered(world, state, goal.deployment, found)


def tell_adopted(world: World, goal: Goal, state: State) -> None:
    for record in state.records:
        for attempt in record.attempts:
            if attempt.name in goal.adopts:
                where = address(goal.name, record.index)
                world.emit(events.Adopted(**about(attempt, where, at=world.clock.now())))
