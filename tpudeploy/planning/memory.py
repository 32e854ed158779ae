"""What a state remembers, as a person asks for it: addresses, one of them whole, and states of before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tpudeploy.domain.errors import StateError
from tpudeploy.domain.names import Address
from tpudeploy.domain.state import Record, State


def addresses(state: State) -> tuple[Address, ...]:
    """Of the replicas that have a slice, or asked for one."""
    return tuple(Address(deployment=state.deployment, replica=r.index) for r in state.records if r.attempts)


def named(states: Mapping[str, State], wanted: Iterable[Address]) -> Iterator[Address]:
    """Every address that `wanted` names; all there are where it names none. Raise `errors.StateError`."""
    every = [each for name in sorted(states) for each in addresses(states[name])]
    asked = tuple(wanted)
    for one in asked:
        if one not in every and not any(e.deployment == one.deployment and one.replica is None for e in every):
            raise absent(one, states)
    for each in every:
        if not asked or each in asked or Address(deployment=each.deployment) in asked:
            yield each


def records(state: State, of: Address) -> tuple[Record, ...]:
    """Those that `of` names. Raise `errors.StateError` where nothing is remembered there."""
    found = tuple(r for r in state.records if r.attempts and of.replica in {None, r.index})
    if not found:
        raise absent(of, {state.deployment: state})
    return found


def absent(of: Address, states: Mapping[str, State]) -> StateError:
    there = [str(each) for name in sorted(states) for each in addresses(states[name])]
    hint = f"There are: {', '.join(there)}." if there else "It remembers no slice."
    return StateError(f"No state here remembers {of}.", hint=f"{hint}\n`tpudeploy state list` names them all.")


def moved(state: State, source: Address, target: Address) -> State:
    """`state` with the slices of one replica at another index; their names stay. Raise `errors.StateError`."""
    (record,) = records(state, source)
    there = state.record(target.replica or 0)
    if there.attempts:
        held = ", ".join(attempt.name for attempt in there.attempts)
        raise StateError(
            f"{target} has a slice already: {held}.", hint=f"Move it first, or: tpudeploy state rm {target}"
        )
    others = tuple(r for r in state.records if r is not record)
    return replace(state, records=others).with_record(replace(record, index=there.index))


def renamed(state: State, name: str, there: State | None) -> State:
    """`state` as that of `name`, where `there` stands. Lineage and slices stay what they are.

    Raise `errors.StateError` where another deployment's slices are remembered under that name.
    """
    if there is not None and there.attempts and there.lineage != state.lineage:
        held = ", ".join(attempt.name for attempt in there.attempts)
        raise StateError(
            f"{name} has slices of its own: {held}.",
            hint=f"Destroy it first, or forget what it has: tpudeploy state rm {name}",
        )
    return replace(state, deployment=name)


def forgotten(state: State, names: Iterable[str]) -> State:
    """`state` without these slices, and without the replicas that have none left."""
    gone = frozenset(names)
    left = (replace(r, attempts=tuple(a for a in r.attempts if a.name not in gone)) for r in state.records)
    return replace(state, records=tuple(r for r in left if r.attempts))


def pushed(now: State | None, given: State, *, force: bool) -> State | None:
    """What is to stand where `now` does; None where it does already.

    Serials and the numbers of attempts only grow, whatever is forced: else a run in the middle of a step would take
    another state for its own, and a name would be given twice. Raise `errors.StateError`.
    """
    if now is None:
        return given
    if now == given:
        return None
    if not force:
        _refuse(now, given)
        return given
    is_kin = now.lineage == given.lineage
    return replace(
        given,
        serial=max(now.serial, given.serial) + 1,
        next_attempt=max(now.next_attempt, given.next_attempt) if is_kin else given.next_attempt,
    )


def _refuse(now: State, given: State) -> None:
    name, forced = given.deployment, "With -force it is put in its place all the same."
    if now.lineage != given.lineage:
        raise StateError(
            f"This state of {name} is of another lineage ({given.lineage[:8]}) than the one here ({now.lineage[:8]}).",
            hint=f"They remember different slices, and those of the one here would be forgotten. {forced}",
        )
    if given.serial <= now.serial:
        than = "no newer than" if given.serial == now.serial else "older than"
        raise StateError(
            f"This state of {name} has the serial {given.serial}, which is {than} the one here ({now.serial}).",
            hint=f"What the one here came to know since would be forgotten. {forced}",
        )


def must_rest(state: State, *, force: bool) -> None:
    """Raise `errors.StateError` where a run has begun something that it has not ended."""
    if state.goal is not None and not force:
        raise StateError(
            f"{state.deployment} is in the middle of what {state.goal.who} began.",
            hint="Let `tpudeploy apply` or `tpudeploy destroy` end it first. With -force, that run stops where it is.",
        )
