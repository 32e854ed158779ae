"""Looking through projects for what nothing needs, and removing it until it is gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.found import Listing
from tpudeploy.domain.garbage import Garbage
from tpudeploy.domain.names import Zone
from tpudeploy.domain.report import Report
from tpudeploy.domain.state import State
from tpudeploy.engine.removal import Removal
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.orphans.collect import garbage
from tpudeploy.ports import World


def survey(world: World, deployments: Sequence[Deployment], projects: Iterable[str], *, foreign: bool) -> Garbage:
    """What nothing needs, of these deployments; of all where none is given. Changes nothing.

    Looks through `projects` and those that the states name. Raise `errors.Fault` or `errors.Denied` where one cannot
    be listed, `errors.StateError` for a state that cannot be read: what it needs is not known.
    """
    names = {d.name for d in deployments}
    known = _states(world, names).values()
    where = sorted({*projects, *(a.project for state in known for a in state.attempts)})
    if not where:
        hint = "Set GOOGLE_CLOUD_PROJECT, or name a profile that has placement.project."
        raise errors.ConfigError("No Google Cloud project is known.", hint=hint)
    zones = {*(c.zone for d in deployments for c in d.candidates), *(a.zone for s in known for a in s.attempts)}
    listings = [_listing(world, project, sorted(zones)) for project in where]
    if names:
        listings = [replace(one, found=tuple(f for f in one.found if f.mark.deployment in names)) for one in listings]
    # Read anew: whatever was asked for before the listing had been written down before that. And all of them: a
    # deployment that was renamed still has slices of its old name.
    return garbage(listings, _states(world, ()), foreign=foreign, now=world.clock.now())


def collect(world: World, of: Garbage) -> Report:
    """Remove what goes, and look until it is gone. What goes wrong with one deployment stops no other."""
    began, quiet = world.clock.now(), 0
    names = dict.fromkeys(s.deployment for s in of.going)
    removals = [
        Removal(world, name, [s for s in of.going if s.deployment == name], foreign=of.foreign) for name in names
    ]
    while pending := [r for r in removals if r.is_pending]:
        news = [removal.step() for removal in pending]
        quiet = 0 if any(news) else quiet + 1
        elapsed = world.clock.now() - began
        if elapsed >= world.patience.removal:
            for removal in pending:
                removal.give_up(elapsed)
        elif any(r.is_pending for r in pending):
            world.clock.sleep(world.patience.poll(quiet))
    return Report(outcomes=tuple(o for r in removals for o in r.outcomes))


def _listing(world: World, project: str, zones: list[Zone]) -> Listing:
    look = partial(world.cloud.list_marked, project, zones)
    return retry_on_fault(world, project, look, budget=world.patience.faults_at_plan)


def _states(world: World, names: Iterable[str]) -> dict[str, State]:
    """By deployment; of all that have one where no name is given."""
    found = {name: world.state.read(name).state for name in names or world.state.names()}
    return {name: state for name, state in found.items() if state is not None}
