"""Operations on a state: move, remove, push. They hold its lock and ask nothing of the cloud."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tpudeploy.domain.errors import CloudError, StateElsewhere, StateError, UsageError
from tpudeploy.domain.names import Address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.session import StateSession, open_session
from tpudeploy.planning.state_edits import (
    check_no_run,
    move_replica,
    moved_state,
    remove_slices,
    rename_deployment,
    replacement_state,
)
from tpudeploy.ports import World


def move(world: World, source: Address, target: Address, *, force: bool = False) -> None:
    """Rename a deployment, or move the slices of a replica to another index.

    Raise `errors.UsageError` for any other pair of addresses, `errors.StateError` if the states do not allow it.
    """
    if source == target:
        raise UsageError(f"{source} and {target} are the same address.")
    if (source.replica is None) != (target.replica is None):
        raise UsageError(
            f"{source} and {target} are not the same kind of address.",
            hint="Name two deployments (gemma chat), or two replicas of one deployment (gemma[1] gemma[0]).",
        )
    if source.replica is None:
        _rename(world, source.deployment, target.deployment, force=force)
        return
    if source.deployment != target.deployment:
        raise UsageError(
            f"A slice cannot move to another deployment: {source} has the lineage of {source.deployment}.",
            hint=f"`state mv {source.deployment} {target.deployment}` renames the whole deployment.",
        )
    with open_session(world, source.deployment, "state mv") as session:
        check_no_run(session.state, force=force)
        session.save(move_replica(session.state, source, target))


def forget(world: World, deployment: str, names: Iterable[str], *, force: bool = False) -> State:
    """Remove these slices from the state, and return it. Slices that were requested meanwhile stay.

    A state without slices is deleted, so that the next plan searches for slices without a state. Raise
    `errors.StateError`.
    """
    with open_session(world, deployment, "state rm") as session:
        check_no_run(session.state, force=force)
        state = remove_slices(session.state, names)
        if state.attempts:
            session.save(state)
        elif not session.is_new:
            session.delete()
        return state


def migrate(world: World, there: World, name: str, place: str, *, force: bool = False) -> State:
    """Move the state of a deployment to another backend, which `place` names, and return it as it is there.

    Before the state exists there, the one here names the place, and no other command works on it any more. So two runs
    never own one slice, whenever this one is killed: the same command continues. Raise `errors.StateError`.
    """
    with (
        open_session(world, name, "state migrate", takes_marker=True) as here,
        open_session(there, name, "state migrate", takes_marker=True) as target,
    ):
        state = here.state
        if here.is_new:
            raise StateError(f"{name} has no state here.", hint="`tpudeploy state list` shows all states.")
        if state.moved_to and (state.moved_to != place or not state.attempts):
            raise StateElsewhere(state, version="")
        is_written = bool(state.moved_to) and not target.state.moved_to and target.state.lineage == state.lineage
        if not is_written:
            check_no_run(state, force=force)
            _check_target(target, state, place)
            if not state.moved_to:
                here.save(replace(state, moved_to=place))
            serial = max(here.state.serial, target.state.serial) + 1
            try:
                target.write(replace(state, moved_to="", serial=serial))
            except (StateError, CloudError):
                here.save(replace(state, moved_to=""))
                raise
        endpoint = world.state.published(name)
        if endpoint is not None:
            world.state.publish(name, None)  # two folders side by side have one file of endpoints
            there.state.publish(name, endpoint)
        here.save(moved_state(here.state, place))
        return target.state


def _check_target(target: StateSession, state: State, place: str) -> None:
    """Raise `errors.StateError` if there is another state: only the marker of an earlier move is replaced."""
    if not target.is_new and not (target.state.moved_to and target.state.lineage == state.lineage):
        raise StateError(
            f"{state.deployment} already has a state in {place}.",
            hint=f"To see it: tpudeploy state show {state.deployment} --backend {place}",
        )


def remove_marker(world: World, name: str) -> None:
    """Remove what a move left of a state here."""
    with open_session(world, name, "state rm", takes_marker=True) as session:
        if session.state.moved_to and not session.state.attempts:
            session.delete()


def push(world: World, state: State, *, force: bool = False) -> tuple[Attempt, ...] | None:
    """Put `state` in place of the current one. Return the slices that are no longer tracked, or None for no change.

    Raise `errors.StateError` for another lineage or an older serial, unless forced.
    """
    with open_session(world, state.deployment, "state push") as session:
        current = None if session.is_new else session.state
        new = replacement_state(current, state, force=force)
        if new is None:
            return None
        session.write(new)
    names = {attempt.name for attempt in new.attempts}
    return () if current is None else tuple(attempt for attempt in current.attempts if attempt.name not in names)


def _rename(world: World, source: str, target: str, *, force: bool) -> None:
    """Hold both locks, always in the same order. After a kill between the writes, the same command continues."""
    first, second = sorted((source, target))
    with open_session(world, first, "state mv") as one, open_session(world, second, "state mv") as other:
        old, new = (one, other) if first == source else (other, one)
        if old.is_new:
            raise StateError(f"{source} has no state here.", hint="`tpudeploy state list` shows all states.")
        check_no_run(old.state, force=force)
        existing = None if new.is_new else new.state
        renamed_state = rename_deployment(old.state, target, existing)
        is_written = existing is not None and existing.lineage == renamed_state.lineage
        if existing is None or not is_written or existing.serial <= renamed_state.serial:
            new.save(renamed_state)
        endpoint = world.state.published(source)
        if endpoint is not None:
            world.state.publish(target, endpoint)
            world.state.publish(source, None)
        old.delete()
