"""Operations on a state: move, remove, push. They hold its lock and ask nothing of the cloud."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.domain.names import Address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.session import open_session
from tpudeploy.planning.state_edits import (
    check_no_run,
    move_replica,
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
