"""Find slices of a state's own lineage that it does not track, so that none is left behind and billed.

A request that the cloud never showed is forgotten after a while, and its slice may appear after that. A run looks for
it by our label: before it requests another slice, and before a removal ends.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import Zone, address
from tpudeploy.domain.orphans import CloudResource, Listing
from tpudeploy.domain.state import State
from tpudeploy.engine.request_events import about
from tpudeploy.engine.session import states_by_name
from tpudeploy.orphans.adoption import adopt
from tpudeploy.orphans.claims import as_attempt, is_adoptable
from tpudeploy.ports import World

# Seconds between two lists of a project for the deployments of one run: each list shows the slices of all of them.
_INTERVAL = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    began: float
    listing: Listing


class Listings:
    """The lists of projects that the deployments of one run share."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last: dict[tuple[str, frozenset[Backend], bool], _Search] = {}
        self._lock = threading.Lock()

    def since(
        self, moment: float, project: str, zones: Collection[Zone], backends: frozenset[Backend], *, machines: bool
    ) -> Listing | None:
        """Return a list that was begun at `moment` or later. None: the last one is too young, or another is under way.

        No run waits for the list of another: Google may take a minute to answer. With `machines`, it has the nodes
        whose queued resource is gone. Raise `errors.CloudError` if the project cannot be listed.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._since(moment, project, zones, backends, machines=machines)
        finally:
            self._lock.release()

    def _since(
        self, moment: float, project: str, zones: Collection[Zone], backends: frozenset[Backend], *, machines: bool
    ) -> Listing | None:
        key = (project, backends, machines)
        last, now = self._last.get(key), self._world.clock.now()
        if last is not None and last.began >= moment:
            return last.listing
        if last is not None and now - last.began < _INTERVAL:
            return None
        listing = self._world.cloud.list_marked(project, sorted(zones), machines=machines, backends=backends)
        self._last[key] = _Search(began=now, listing=listing)
        return listing


class StraySearch:
    """The searches of one deployment's run. `names` are the strays that it found, which may be deleted unplanned."""

    def __init__(self, world: World, listings: Listings) -> None:
        self._world = world
        self._listings = listings
        self._began = world.clock.now()
        self._backends: set[Backend] = set()
        self._has_looked = False
        self._has_old_names: bool | None = None
        self._doubtful_until = 0.0
        self.names: set[str] = set()
        self.bare: tuple[CloudResource, ...] = ()  # nodes without a queued resource, which a removal found last

    def note(self, state: State) -> None:
        """Remember at which APIs the state has requests, and whether earlier runs have forgotten some."""
        if self._has_old_names is None:
            self._has_old_names = state.next_attempt > len(state.attempts)
        self._backends.update(attempt.backend for attempt in state.attempts)

    def doubt(self) -> None:
        """Record that a request is forgotten that was never seen: its slice may still appear."""
        self._doubtful_until = self._world.clock.now() + self._world.patience.stray

    @property
    def is_due(self) -> bool:
        """Whether to look before another slice is requested: a forgotten request may have led to one."""
        # An earlier run may have forgotten what it never saw. In this run, a plain refusal is no reason to look.
        is_first = not self._has_looked and self._has_old_names is True
        return is_first or self._world.clock.now() < self._doubtful_until

    def look(
        self, state: State, deployment: Deployment | None, *, since: float | None = None
    ) -> tuple[CloudResource, ...] | None:
        """Return the strays of a state, or None if it is too early for another list.

        Without `since`, a list of this run is new enough; a removal, which gives it, also looks for nodes whose queued
        resource is gone, and has them in `bare`: no state can track one. Raise `errors.Fault`. An API that denies the
        list is named once, and the run continues.
        """
        strays: list[CloudResource] = []
        for project in sorted({attempt.project for attempt in state.attempts} | _project_of(deployment)):
            zones = {attempt.zone for attempt in state.attempts}
            backends = frozenset(self._backends | set(() if deployment is None else deployment.backends))
            try:
                listing = self._listings.since(
                    self._began if since is None else since, project, zones, backends, machines=since is not None
                )
            except errors.Fault:
                raise
            except errors.CloudError as error:
                self._warn(state, f"{project} cannot be searched: {error.message}")
                continue
            if listing is None:
                return None
            if listing.unreachable:
                self._warn(state, f"{project} was searched, and no answer came from {', '.join(listing.unreachable)}.")
            strays += _of_lineage(listing.resources, state)
        self._has_looked = True
        free = _without_others(self._world, strays, state) if strays else []
        self.bare = tuple(stray for stray in free if stray.ref.is_bare)
        return tuple(stray for stray in free if is_adoptable(stray))

    def with_strays(self, state: State, deployment: Deployment | None, strays: Sequence[CloudResource]) -> State:
        """Return the state with these strays in it, to be saved and then reported."""
        now = self._world.clock.now()
        if deployment is not None:
            return adopt(state, deployment, strays, {}, now)
        for stray in strays:
            attempt = as_attempt(stray, stray.ref.name, now)
            state = state.with_record(state.record(stray.mark.replica).with_attempt(attempt))
        return state

    def report(self, state: State, strays: Iterable[CloudResource]) -> None:
        """Report the strays that the saved state tracks now."""
        names = {stray.ref.name for stray in strays}
        self.names |= names
        for index, attempt in state.indexed_attempts:
            if attempt.name in names:
                where = address(state.deployment, index)
                self._world.emit(events.Adopted(**about(attempt, where, at=self._world.clock.now())))

    def _warn(self, state: State, message: str) -> None:
        if self._has_looked:
            return
        self._has_looked = True
        hint = f"It may have slices of {state.deployment} that no state tracks. `tpudeploy gc` searches again."
        self._world.emit(
            events.Warned(at=self._world.clock.now(), address=state.deployment, message=message, hint=hint)
        )


def _project_of(deployment: Deployment | None) -> set[str]:
    return set() if deployment is None or deployment.project is None else {deployment.project}


def _of_lineage(resources: Iterable[CloudResource], state: State) -> list[CloudResource]:
    """Return what carries the state's lineage as evidence, and is not in the state."""
    names = {attempt.name for attempt in state.attempts}
    lineage = state.lineage[:8]
    # The state may still have the request of a node whose queued resource is gone, under the same name.
    strays = [
        r
        for r in resources
        if r.mark.lineage == lineage
        and ((r.ref.is_bare and r.is_signed) or (is_adoptable(r) and r.ref.name not in names))
    ]
    return [replace(r, mark=replace(r.mark, deployment=state.deployment)) for r in strays]


def _without_others(world: World, strays: Iterable[CloudResource], state: State) -> list[CloudResource]:
    """Leave out what the state of another deployment tracks."""
    others = (other for name, other in states_by_name(world.state).items() if name != state.deployment)
    places = {(a.project, a.zone, a.name) for other in others for a in other.attempts}
    return [stray for stray in strays if (stray.ref.project, stray.ref.zone, stray.ref.name) not in places]
