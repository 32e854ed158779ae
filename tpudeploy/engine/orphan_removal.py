"""Find what no state needs in whole projects, and remove it, under the lock of its deployment, until it is gone.

A resource that an apply needs by then is kept. Nothing has to be written down: after a kill, the next run
begins with what the cloud still lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tpudeploy.catalog.backends import import_id
from tpudeploy.domain import errors, events
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.life import ReleaseBegan
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import Claim, Listing, NotSearched, Orphan, Orphans
from tpudeploy.domain.plan import Action
from tpudeploy.domain.report import ReplicaOutcome, RunReport
from tpudeploy.domain.slices import Absence, Observed, Slice, SliceEnd, SliceRef
from tpudeploy.domain.state import Record, State
from tpudeploy.domain.step import Forget, Release, Step, Wait
from tpudeploy.engine.ledger import record_removal, record_untracked_end
from tpudeploy.engine.observe import ObservationTarget, observe_all
from tpudeploy.engine.request_events import About, about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import StateSession, open_session, states_by_name
from tpudeploy.orphans.claims import as_attempt, find_orphans, is_removable
from tpudeploy.ports import World
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.decide import remove
from tpudeploy.reconcile.spend import Billing, account

_SILENCE = 300.0  # seconds without news before each "still waiting"
_WHY: Mapping[Claim, str] = {
    Claim.LEFTOVER: "its state does not track it",
    Claim.NO_STATE: "no state here tracks it",
    Claim.OTHER_LINEAGE: "the state here has another lineage",
}


def survey(world: World, deployments: Sequence[Deployment], projects: Iterable[str], *, foreign: bool) -> Orphans:
    """Return what no state needs of these deployments, or of all where none is given. Changes nothing.

    Searches both APIs in `projects` and in those that the states name: a lost state does not say which one was used.
    Raise `errors.Fault` or `errors.Denied` where one cannot be listed, `errors.StateError` for a state that cannot be
    read, because what it needs is not known.
    """
    names = {deployment.name for deployment in deployments}
    zones: set[Zone] = set()
    used: set[Backend] = set()
    for deployment in deployments:
        zones.update(candidate.zone for candidate in deployment.candidates)
        used.update(deployment.backends)
        if deployment.router_machine is not None:
            used.update(deployment.router_machine.backends)
    searched = set(projects)
    for state in states_by_name(world.state, names).values():
        for attempt in state.attempts:
            searched.add(attempt.project)
            zones.add(attempt.zone)
            used.add(attempt.backend)
    if not searched:
        hint = "Set GOOGLE_CLOUD_PROJECT, or name a profile that sets placement.project."
        raise errors.ConfigError("No Google Cloud project is set.", hint=hint)
    listings: list[Listing] = []
    not_searched: list[NotSearched] = []
    for project in sorted(searched):
        own_listings, missing = _list_project(world, project, sorted(zones), used)
        listings += (_only_of(listing, names) for listing in own_listings)
        not_searched += missing
    # The states are read again: an intent is written before its request, so each listed resource is in them by now. All
    # of them are read, because a deployment that was renamed still has slices of its old name.
    states = states_by_name(world.state)
    return find_orphans(listings, states, foreign=foreign, now=world.clock.now(), not_searched=not_searched)


def _list_project(
    world: World, project: str, zones: Sequence[Zone], used: Collection[Backend]
) -> tuple[list[Listing], list[NotSearched]]:
    """Return what each API lists, and the APIs that the project does not have or show and that nothing here uses.

    Raise `errors.Denied` where an API in use denies the search, or all of them do.
    """
    listings: list[Listing] = []
    denials: dict[Backend, errors.Denied] = {}
    for backend in Backend:
        list_zones = partial(world.cloud.list_marked, project, zones, backends={backend})
        try:
            listings.append(retry_on_fault(world, project, list_zones, budget=world.patience.faults_at_plan))
        except errors.Denied as denied:
            if backend in used:
                raise
            denials[backend] = denied
    if not listings:
        raise next(iter(denials.values()))
    missing = [NotSearched(project=project, backend=each, reason=_reason(denial)) for each, denial in denials.items()]
    return listings, missing


def _reason(denied: errors.Denied) -> str:
    is_disabled = denied.refusal is not None and denied.refusal.kind == "api-off"
    return "The API is not enabled there." if is_disabled else denied.message


def _only_of(listing: Listing, names: Collection[str]) -> Listing:
    """Return the listing of these deployments, or of all where none is given."""
    if not names:
        return listing
    return replace(listing, resources=tuple(r for r in listing.resources if r.mark.deployment in names))


def collect(world: World, orphans: Orphans) -> RunReport:
    """Remove what goes, and observe until it is gone. An error of one deployment stops no other.

    What is gone already, and the ledger still counts as running, is closed there.
    """
    began, quiet = world.clock.now(), 0
    by_deployment: dict[str, list[Orphan]] = {}
    for orphan in orphans.going:
        by_deployment.setdefault(orphan.deployment, []).append(orphan)
    removals = [OrphanRemoval(world, name, own, foreign=orphans.foreign) for name, own in by_deployment.items()]
    while pending := [removal for removal in removals if removal.is_pending]:
        news = [removal.step() for removal in pending]
        quiet = 0 if any(news) else quiet + 1
        elapsed = world.clock.now() - began
        if elapsed >= world.patience.removal:
            for removal in pending:
                removal.give_up(elapsed)
        elif any(removal.is_pending for removal in pending):
            world.clock.sleep(world.patience.poll(quiet))
    _close_ended(world)
    return RunReport(outcomes=tuple(outcome for removal in removals for outcome in removal.outcomes))


def _close_ended(world: World) -> None:
    """Record the ends of slices that ended by themselves, or that a person or a gc that was killed has deleted."""
    states = tuple(states_by_name(world.state).values())
    for state in states:
        with suppress(errors.Fault, errors.Denied):  # the next gc looks again
            observe_all(world, [ObservationTarget(state=state)], probe_again=False)
    tracked_names = {attempt.name for state in states for attempt in state.attempts}
    for each in account(world.cost_backend.ledger(), states, world.clock.now()):
        request = each.request
        if each.billing is Billing.RAN or request.name in tracked_names:
            continue
        ref = SliceRef(
            name=request.name,
            project=request.project,
            zone=request.zone,
            provisioning=request.provisioning,
            backend=request.backend,
            accelerator_type=request.type,
            was_granted=True,
        )
        with suppress(errors.Fault, errors.Denied):
            if not world.cloud.slices([ref]):
                record_untracked_end(world, each, world.cloud.end(ref))


class OrphanRemoval:
    """The removal of one deployment's orphans. `outcomes` has those that ended: gone, or failed.

    Everything goes by its path, because a name can exist in two zones.
    """

    def __init__(self, world: World, deployment: str, orphans: Iterable[Orphan], *, foreign: bool) -> None:
        self._world = world
        self._deployment = deployment
        self._foreign = foreign
        self._began = self._last_news = world.clock.now()
        self._orphans = {import_id(orphan.resource.ref): orphan for orphan in orphans}
        self._attempts = {path: as_attempt(o.resource, path, self._began) for path, o in self._orphans.items()}
        self._raw_states = {path: o.resource.slice.raw_state for path, o in self._orphans.items()}
        self._ends: dict[str, SliceEnd | None] = {}
        self._is_observed = False
        self.outcomes: list[ReplicaOutcome] = []

    @property
    def is_pending(self) -> bool:
        return bool(self._attempts)

    def step(self) -> bool:
        """Observe once, and do what is right then. Return whether there was any news."""
        patience, last_news = self._world.patience, self._last_news
        budget = patience.faults if self._is_observed else patience.faults_at_plan
        try:
            retry_on_fault(self._world, self._deployment, self._tick, budget=budget)
        except errors.TpudeployError as error:
            self._fail(error)
        return self._last_news != last_news

    def give_up(self, elapsed: float) -> None:
        rest = ", ".join(f"{path} ({self._raw_states[path]})" for path in self._attempts)
        hint = "Google does not delete a resource while it provisions it. Run `tpudeploy gc` again to delete the rest."
        self._fail(errors.CloudError(f"Not deleted after {elapsed / 60:.0f} minutes: {rest}.", hint=hint))

    def _tick(self) -> None:
        with open_session(self._world, self._deployment, "gc") as session:
            self._spare(session.state)
            slices = {path: self._world.cloud.slices([self._orphans[path].resource.ref]) for path in self._attempts}
            present = {path: each[0] for path, each in slices.items() if each}
            observed = Observed(at=self._world.clock.now(), slices=present)
            self._is_observed = True
            context = DecisionContext(observed=observed, patience=self._world.patience)
            for path, attempt in tuple(self._attempts.items()):
                self._report(path, present.get(path), observed.at)
                record = Record(index=self._orphans[path].resource.mark.replica, attempts=(attempt,))
                for step in remove(record, context):
                    self._execute(session, path, step, observed.at)

    def _spare(self, state: State) -> None:
        """Leave alone what an apply has come to need since. Without a state, `state` is a fresh one."""
        for path in tuple(self._attempts):
            orphan = self._orphans[path]
            if not is_removable(orphan.resource, {self._deployment: state}, foreign=self._foreign):
                del self._attempts[path]
                message = f"{orphan.resource.ref.name} is needed by now, and is kept."
                now = self._world.clock.now()
                self._world.emit(events.Warned(at=now, address=orphan.address, message=message, hint=""))

    def _report(self, path: str, slice_: Slice | None, now: float) -> None:
        if slice_ is None or self._raw_states[path] == slice_.raw_state:
            return
        self._raw_states[path], self._last_news = slice_.raw_state, now
        elapsed = now - self._began
        self._world.emit(
            events.PhaseChanged(**self._about(path, now), phase=slice_.phase, detail=slice_.raw_state, elapsed=elapsed)
        )

    def _execute(self, session: StateSession, path: str, step: Step, now: float) -> None:
        match step:
            case Release():
                self._release(session, path, now)
            case Forget():
                self._record_removal(path, now)
                self._world.emit(events.Gone(**self._about(path, now), reason=Absence.GONE))
                del self._attempts[path]
                self._last_news = now
                self.outcomes.append(ReplicaOutcome(address=path, action=Action.DESTROY))
            case Wait() if now - self._last_news >= _SILENCE:
                self._last_news = now
                where = self._orphans[path].address
                self._world.emit(events.Waiting(at=now, address=where, why=step.why, elapsed=now - self._began))

    def _record_removal(self, path: str, now: float) -> None:
        resource, attempt = self._orphans[path].resource, self._attempts[path]
        at = now if attempt.releasing_at is None else attempt.releasing_at
        named_attempt = replace(attempt, name=resource.ref.name)
        record_removal(self._world, self._deployment, resource, named_attempt, at=at, end=self._ends.get(path))

    def _release(self, session: StateSession, path: str, now: float) -> None:
        """Request the deletion as often as it takes, and report it once. Raise as `StateSession.asking` does."""
        orphan, attempt = self._orphans[path], self._attempts[path]
        why = _WHY[orphan.claim]
        if attempt.releasing_at is None:
            # Afterwards, Google's record is of this deletion.
            with suppress(errors.CloudError):
                self._ends[path] = self._world.cloud.end(orphan.resource.ref)
        self._attempts[path] = attempt.after(ReleaseBegan(releasing_at=now, reason=why))
        with session.asking():  # a run that paused for longer than its lease cannot know that an apply needs it by now
            self._world.cloud.release(orphan.resource.ref)
        if attempt.releasing_at is None:
            self._last_news = now
            self._world.emit(events.Released(**self._about(path, now), reason=why))

    def _about(self, path: str, now: float) -> About:
        orphan = self._orphans[path]
        attempt = replace(self._attempts[path], name=orphan.resource.ref.name)
        return about(attempt, orphan.address, at=now)

    def _fail(self, error: errors.TpudeployError) -> None:
        self.outcomes += [ReplicaOutcome(address=path, action=Action.DESTROY, error=error) for path in self._attempts]
        self._attempts.clear()
