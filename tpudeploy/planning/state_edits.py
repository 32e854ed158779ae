"""Edits of a state by the user, as pure functions: addresses, moves, removals, and states that are put in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.names import ROUTER, Address
from tpudeploy.domain.state import Record, State


def addresses(state: State) -> tuple[Address, ...]:
    """Return the addresses of the replicas that have a slice, or requested one."""
    return tuple(Address(deployment=state.deployment, replica=r.index) for r in state.all_records if r.attempts)


def select_addresses(states: Mapping[str, State], selection: Iterable[Address]) -> Iterator[Address]:
    """Yield every address that `selection` names, or all of them for an empty one. Raise `errors.StateError`."""
    existing = [each for name in sorted(states) for each in addresses(states[name])]
    names = {each.deployment for each in existing}
    selected = tuple(selection)
    for each in selected:
        if each not in existing and not (each.replica is None and each.deployment in names):
            raise _not_tracked(each, states)
    for each in existing:
        if not selected or each in selected or Address(deployment=each.deployment) in selected:
            yield each


def records_at(state: State, where: Address) -> tuple[Record, ...]:
    """Return the records of an address. Raise `errors.StateError` if the state tracks nothing there."""
    records = tuple(record for record in state.all_records if record.attempts and where.replica in {None, record.index})
    if not records:
        raise _not_tracked(where, {state.deployment: state})
    return records


def _not_tracked(where: Address, states: Mapping[str, State]) -> StateError:
    existing = [str(each) for name in sorted(states) for each in addresses(states[name])]
    hint = f"There are: {', '.join(existing)}." if existing else "No state here tracks a slice."
    guess = "" if where.deployment in states else catalog.guess(where.deployment, sorted(states))
    hint = f"{hint}\n`tpudeploy state list` lists all addresses."
    return StateError(f"No state here tracks {where}.", hint=hint, guess=guess)


def move_replica(state: State, source: Address, target: Address) -> State:
    """Return `state` with the slices of one replica at another index, under their names. Raise `errors.StateError`."""
    (record,) = records_at(state, source)
    if ROUTER in {source.replica, target.replica}:
        raise StateError(f"{source} cannot become {target}: a router's VM is not a replica.")
    target_record = state.record(target.replica or 0)
    if target_record.attempts:
        names = ", ".join(attempt.name for attempt in target_record.attempts)
        raise StateError(
            f"{target} already has a slice: {names}.", hint=f"Move it first, or: tpudeploy state rm {target}"
        )
    others = tuple(each for each in state.records if each is not record)
    replicas = tuple(sorted(target_record.index if i == record.index else i for i in state.replicas))
    return replace(state, records=others, replicas=replicas).with_record(replace(record, index=target_record.index))


def rename_deployment(state: State, name: str, existing: State | None) -> State:
    """Return `state` as the state of `name`, in place of `existing`. Lineage and slices stay as they are.

    Raise `errors.StateError` if `existing` tracks slices of another deployment.
    """
    if existing is not None and existing.attempts and existing.lineage != state.lineage:
        names = ", ".join(attempt.name for attempt in existing.attempts)
        raise StateError(
            f"{name} has slices of its own: {names}.",
            hint=f"Destroy it first, or stop tracking its slices: tpudeploy state rm {name}",
        )
    return replace(state, deployment=name)


def moved_state(state: State, place: str) -> State:
    """Return the marker that remains of a state whose slices another backend tracks now."""
    return State(
        deployment=state.deployment,
        lineage=state.lineage,
        serial=state.serial,
        next_attempt=state.next_attempt,
        moved_to=place,
    )


def remove_slices(state: State, names: Iterable[str]) -> State:
    """Return `state` without these slices, and without the replicas that then have none."""
    removed = frozenset(names)
    *records, router = (
        replace(record, attempts=tuple(a for a in record.attempts if a.name not in removed))
        for record in state.all_records
    )
    return replace(state, records=tuple(record for record in records if record.attempts), router=router)


def replacement_state(current: State | None, pushed: State, *, force: bool) -> State | None:
    """Return the state to write in place of `current`, or None if nothing has to be written.

    Serials and attempt numbers only grow, even with `force`: otherwise a run in the middle of a step would take another
    state for its own, and a name would be used twice. Raise `errors.StateError`.
    """
    if current is None:
        return pushed
    if current == pushed:
        return None
    if not force:
        _check_push(current, pushed)
        return pushed
    next_attempt = pushed.next_attempt
    if current.lineage == pushed.lineage:
        next_attempt = max(current.next_attempt, next_attempt)
    return replace(pushed, serial=max(current.serial, pushed.serial) + 1, next_attempt=next_attempt)


def _check_push(current: State, pushed: State) -> None:
    name, forced = pushed.deployment, "With -force, it replaces the current state anyway."
    if current.lineage != pushed.lineage:
        raise StateError(
            f"This state of {name} is of another lineage ({pushed.lineage[:8]}) than the one here"
            f" ({current.lineage[:8]}).",
            hint=f"The two track different slices, and those of the current state would no longer be tracked. {forced}",
        )
    if pushed.serial <= current.serial:
        than = "no newer than" if pushed.serial == current.serial else "older than"
        raise StateError(
            f"This state of {name} has the serial {pushed.serial}, which is {than} the one here ({current.serial}).",
            hint=f"The changes that were saved here since then would be lost. {forced}",
        )


def check_no_run(state: State, *, force: bool) -> None:
    """Raise `errors.StateError` if a run has begun something that it has not ended."""
    if state.goal is not None and not force:
        raise StateError(
            f"A run that {state.goal.who} began on {state.deployment} has not ended.",
            hint="Let `tpudeploy apply` or `tpudeploy destroy` finish it first. With -force, that run stops.",
        )
