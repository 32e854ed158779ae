"""Find and adopt the slices of deployments without a state, by name and label, so that they are not bought twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.names import address
from tpudeploy.domain.orphans import CloudResource, Listing
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import State
from tpudeploy.engine.request_events import about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import states_by_name
from tpudeploy.orphans.adoption import adopt, adoptable
from tpudeploy.orphans.claims import not_searched
from tpudeploy.ports import World

Resources = Mapping[str, tuple[CloudResource, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """`resources` by deployment, as they are now. `diagnostics` name what could not be searched."""

    resources: Resources
    diagnostics: tuple[Diagnostic, ...] = ()


def search(world: World, deployments: Iterable[Deployment]) -> SearchResult:
    """List each project once, for deployments without a state only, so that a plan stays quick.

    A listing that fails stops no plan: what it would have shown is reported as not known.
    """
    by_project: dict[str, list[Deployment]] = {}
    for deployment in deployments:
        if deployment.project is not None:
            by_project.setdefault(deployment.project, []).append(deployment)
    resources: dict[str, tuple[CloudResource, ...]] = {}
    diagnostics: list[Diagnostic] = []
    for project, own in by_project.items():
        names = [deployment.name for deployment in own]
        zones = dict.fromkeys(c.zone for deployment in own for c in deployment.candidates)
        machines = [deployment.router_machine for deployment in own if deployment.router_machine is not None]
        backends = {backend for deployment in (*own, *machines) for backend in deployment.backends}
        list_zones = partial(world.cloud.list_marked, project, tuple(zones), machines=False, backends=backends)
        try:
            listing = retry_on_fault(world, project, list_zones, budget=world.patience.faults_at_plan)
            resources |= {name: _observed(world, listing, name) for name in names}
            resources = _without_tracked(world, resources)
        except errors.CloudError as error:
            diagnostics.append(not_searched(names, error.message))
            continue
        if listing.unreachable:
            diagnostics.append(not_searched(names, f"no answer from {', '.join(listing.unreachable)}."))
    return SearchResult(resources=resources, diagnostics=tuple(diagnostics))


def _observed(world: World, listing: Listing, name: str) -> tuple[CloudResource, ...]:
    """Return its resources, each read by itself: a listing does not show the machine."""
    own = [resource for resource in listing.resources if resource.mark.deployment == name]
    slices = ((resource, world.cloud.slices([resource.ref])) for resource in own)
    return tuple(replace(resource, slice=present[0]) for resource, present in slices if present)


def _without_tracked(world: World, resources: Resources) -> dict[str, tuple[CloudResource, ...]]:
    """Leave out what another state tracks: a deployment that was renamed has slices of its old name.

    The slices that its own state tracks are kept: that state was written during the search, and has to be read.
    """
    if not any(resources.values()):
        return dict(resources)
    owners: dict[tuple[str, str, str], str] = {}
    for state in states_by_name(world.state).values():
        owners.update({(attempt.project, attempt.zone, attempt.name): state.deployment for attempt in state.attempts})

    def is_free(resource: CloudResource, deployment: str) -> bool:
        ref = resource.ref
        return owners.get((ref.project, ref.zone, ref.name), deployment) == deployment

    return {name: tuple(resource for resource in own if is_free(resource, name)) for name, own in resources.items()}


def adopt_all(world: World, state: State, deployment: Deployment, resources: Iterable[CloudResource]) -> State:
    """Return `state` with what can be adopted of these. Raise `errors.Fault`."""
    chosen = adoptable(resources)
    refs = [resource.ref for resource in chosen if resource.slice.phase is Phase.UP]
    reports = {ref.name: world.cloud.report(ref) for ref in refs}
    present = {name: report for name, report in reports.items() if report is not None}
    return adopt(state, deployment, chosen, present, world.clock.now())


def with_adopted(world: World, goal: Goal, state: State) -> State:
    """Return `state` with what `goal` adopts, searched once more; itself where it adopts nothing, or is not new.

    Raise `errors.StalePlan` where there are other slices now than the plan showed.
    """
    if not goal.adopts or goal.deployment is None or state.serial:
        return state
    resources = search(world, [goal.deployment]).resources.get(goal.name, ())
    if {resource.ref.name for resource in adoptable(resources)} != set(goal.adopts):
        raise errors.StalePlan(
            f"The untracked slices of {goal.name} no longer match what the plan adopts.",
            hint="Run the command again to see and approve a new plan.",
        )
    return adopt_all(world, state, goal.deployment, resources)


def report_adopted(world: World, goal: Goal, state: State) -> None:
    for index, attempt in state.indexed_attempts:
        if attempt.name in goal.adopts:
            where = address(goal.name, index)
            world.emit(events.Adopted(**about(attempt, where, at=world.clock.now())))
