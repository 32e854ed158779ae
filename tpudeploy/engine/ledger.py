"""Record in the ledger what may be billed. The ledger is beside the state, and every command that looks adds to it.

A request is recorded between the save of its intent and the call; its end before it leaves the state. So a run that is
killed anywhere leaves each request in the state or in the ledger. A fact may be written twice; readers take the first.

Why: decision 87 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpudeploy.domain import errors, events
from tpudeploy.domain.ledger import BackendMove, LedgerFact, MachineEnd, StateRemoval
from tpudeploy.domain.orphans import CloudResource
from tpudeploy.domain.slices import Observed, Refusal, SliceEnd
from tpudeploy.domain.state import Attempt, State
from tpudeploy.ports import World
from tpudeploy.reconcile.ledger_facts import (
    absences,
    departures,
    new_requests,
    news,
    priced_request,
    removal,
    sightings,
    unseen_run,
    untracked_end,
)
from tpudeploy.reconcile.spend import Interval, exposures, with_bounds

# What it means that a request leaves the state, by the operation that removes it; None where it stays in another state
# of the same backend. Every other operation removes what it has proven to be gone.
_DEPARTURES: Mapping[str, type[StateRemoval | BackendMove] | None] = {
    "state rm": StateRemoval,
    "state push": StateRemoval,
    "state mv": None,
    "state migrate": BackendMove,
}


def record_departures(world: World, before: State, after: State | None, operation: str) -> None:
    """Record what leaves the state, before it is written."""
    kind = _DEPARTURES.get(operation, MachineEnd)
    tracked_names = set() if after is None else {attempt.name for attempt in after.attempts}
    names = [attempt.name for attempt in before.attempts if attempt.name not in tracked_names]
    if names and kind is not None:
        _record(world, before.deployment, departures(kind, before, names, world.clock.now()))


def record_machine_end(world: World, state: State, name: str) -> None:
    """Record the end of a machine that an earlier deletion removed, before what is left of its slice is deleted."""
    _record(world, state.deployment, departures(MachineEnd, state, [name], world.clock.now()))


def record_requests(world: World, before: State, after: State) -> None:
    """Record what the state tracks from now on, after it was written and before anything is requested."""
    now = world.clock.now()
    _record(world, after.deployment, with_bounds(new_requests(before.attempts, after, now), exposures(after, now)))


def record_observation(world: World, state: State, observed: Observed, *, releases: bool = False) -> None:
    """Record what an observation shows and the ledger does not have: machines that run, and those that are gone.

    `releases`: the caller deletes what is lost, and removes what is gone from the state, which records that.
    """
    facts = list(sightings(state, observed, releases=releases))
    if not releases:
        facts += absences(state, observed, world.patience)
    if not facts:
        return
    try:
        recorded = world.cost_backend.ledger().facts
    except (errors.StateError, errors.CloudError) as error:
        _warn(world, state.deployment, error)
        return
    _record(world, state.deployment, news(facts, recorded))


def record_unseen_run(world: World, name: str, replica: int, attempt: Attempt, refusal: Refusal | None) -> None:
    """Record what a request without a trace may have cost, before the state forgets it."""
    _record(world, name, unseen_run(name, replica, attempt, refusal, world.clock.now()))


def record_removal(
    world: World, name: str, resource: CloudResource, attempt: Attempt, *, at: float, end: SliceEnd | None = None
) -> None:
    """Record the deletion of a slice that no state tracks; see `ledger_facts.removal`."""
    request = priced_request(name, resource.mark.replica, attempt)
    _record(world, name, removal(request, resource, end, at=at, now=world.clock.now()))


def record_untracked_end(world: World, interval: Interval, end: SliceEnd | None) -> None:
    """Record that a slice is gone that no state tracks: Google's time for it counts, or else now."""
    request = interval.request
    _record(world, request.deployment, [untracked_end(request, interval.began, end, world.clock.now())])


def _record(world: World, name: str, facts: Iterable[LedgerFact]) -> None:
    for fact in facts:
        try:
            world.cost_backend.enter(fact)
        except (errors.StateError, OSError) as error:
            _warn(world, name, error)
            return


def _warn(world: World, name: str, error: Exception) -> None:
    message = error.message if isinstance(error, errors.TpudeployError) else str(error)
    world.emit(
        events.Warned(
            at=world.clock.now(),
            address=name,
            message=f"The ledger of costs is not written: {message}",
            hint="`tpudeploy cost` and budgets lack a part of what is known by now.",
        )
    )
