"""Record in the ledger what may be billed. The ledger is written beside the state, by whichever run changes it.

A request is recorded between the save of its intent and the call; its end before it leaves the state. So a run that is
killed anywhere leaves each request in the state or in the ledger. A line may be written twice; readers take the first.

Why: decision 87 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tpudeploy.domain import errors, events
from tpudeploy.domain.ledger import LedgerEvent, LedgerLine
from tpudeploy.domain.slices import Observed, SliceEnd
from tpudeploy.domain.state import Attempt, State
from tpudeploy.ports import World
from tpudeploy.reconcile.ledger_lines import (
    departures,
    grants,
    new_requests,
    removal,
    unseen_ends,
    unseen_run,
    untracked_end,
)
from tpudeploy.reconcile.spend import Charge, exposures, with_bounds

# What it means that a request leaves the state, by the operation that removes it; None where it stays in another state
# of the same backend. Every other operation removes what it has proven to be gone.
_DEPARTURES: Mapping[str, LedgerEvent | None] = {
    "state rm": LedgerEvent.UNTRACKED,
    "state push": LedgerEvent.UNTRACKED,
    "state mv": None,
    "state migrate": LedgerEvent.MOVED,
}


def record_departures(world: World, before: State, after: State | None, operation: str) -> None:
    """Record what leaves the state, before it is written."""
    event = _DEPARTURES.get(operation, LedgerEvent.GONE)
    tracked_names = set() if after is None else {attempt.name for attempt in after.attempts}
    names = [attempt.name for attempt in before.attempts if attempt.name not in tracked_names]
    if names and event is not None:
        _record(world, before.deployment, departures(event, before, names, world.clock.now()))


def record_machine_end(world: World, state: State, name: str) -> None:
    """Record the end of a machine that an earlier deletion removed, before what is left of its slice is deleted."""
    _record(world, state.deployment, departures(LedgerEvent.GONE, state, [name], world.clock.now()))


def record_requests(world: World, before: State, after: State) -> None:
    """Record what the state tracks from now on, after it was written and before anything is requested."""
    now = world.clock.now()
    _record(world, after.deployment, with_bounds(new_requests(before.attempts, after, now), exposures(after, now)))


def record_grants(world: World, before: State, after: State, observed: Observed) -> None:
    """Record whose machine an observation showed for the first time, before that is saved."""
    _record(world, after.deployment, grants(before, after, observed))


def record_ends(world: World, state: State, observed: Observed) -> None:
    """Record the ends that no run saw, by Google's own times, before the state forgets these slices."""
    _record(world, state.deployment, unseen_ends(state, observed))


def record_unseen_run(world: World, name: str, replica: int, attempt: Attempt) -> None:
    """Record what a request without a trace may have cost, before the state forgets it."""
    _record(world, name, unseen_run(name, replica, attempt, world.clock.now()))


def record_removal(
    world: World, name: str, replica: int, attempt: Attempt, *, at: float, began: float | None, still_ran: bool = False
) -> None:
    """Record the deletion of a slice that no state tracks; see `ledger_lines.removal`."""
    _record(world, name, removal(name, replica, attempt, at, began=began, still_ran=still_ran))


def record_untracked_end(world: World, charge: Charge, end: SliceEnd | None) -> None:
    """Record that a slice is gone that no state tracks: Google's time for it counts, or else now."""
    line = replace(charge.line, began=charge.began)
    _record(world, line.deployment, [untracked_end(line, end, world.clock.now())])


def _record(world: World, name: str, lines: Iterable[LedgerLine]) -> None:
    for line in lines:
        try:
            world.cost_backend.enter(line)
        except (errors.StateError, OSError) as error:
            message = error.message if isinstance(error, errors.StateError) else str(error)
            world.emit(
                events.Warned(
                    at=world.clock.now(),
                    address=name,
                    message=f"The ledger of costs is not written: {message}",
                    hint="`tpudeploy cost` and budgets lack a part of what this run costs.",
                )
            )
            return
