"""The state in a person's hands: moved, forgotten, put back. Under its lock, and without a word to the cloud."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.domain.names import Address
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.session import open_session
from tpudeploy.planning.memory import forgotten, moved, must_rest, pushed, renamed
from tpudeploy.ports import World


def move(world: World, source: Address, target: Address, *, force: bool = False) -> None:
    """Rename a deployment, or move the slices of a replica to another index.

    Raise `errors.UsageError` where it is neither, `errors.StateError` where something stands in the way.
    """
    if source == target:
        raise UsageError(f"{source} is {target} already.")
    if (source.replica is None) != (target.replica is None):
        raise UsageError(
            f"{source} and {target} are not of one kind.",
            hint="Name two deployments (gemma chat), or two replicas of one (gemma[1] gemma[0]).",
        )
    if source.replica is None:
        _rename(world, source, target, force=force)
        return
    if source.deployment != target.deployment:
        raise UsageError(
            f"A slice cannot leave its deployment: {source} carries the lineage of {source.deployment}.",
            hint=f"`state mv {source.deployment} {target.deployment}` renames the whole.",
        )
    with open_session(world, source.deployment, "state mv") as held:
        must_rest(held.state, force=force)
        held.save(moved(held.state, source, target))


def forget(world: World, deployment: str, names: Iterable[str], *, force: bool = False) -> State:
    """Forget these slices; what was asked for since they were looked up stays. The state as it then is.

    A state that remembers no slice any more is deleted, so that the next plan looks for what stands without one.
    Raise `errors.StateError`.
    """
    with open_session(world, deployment, "state rm") as held:
        must_rest(held.state, force=force)
        left = forgotten(held.state, names)
        if left.attempts:
            held.save(left)
        elif not held.is_new:
            held.delete()
        return left


def push(world: World, given: State, *, force: bool = False) -> tuple[Attempt, ...] | None:
    """Put `given` in its place. What was remembered there and is no more; None where nothing had to be done.

    Raise `errors.StateError` for another lineage or an older serial, unless forced.
    """
    with open_session(world, given.deployment, "state push") as held:
        now = None if held.is_new else held.state
        new = pushed(now, given, force=force)
        if new is None:
            return None
        held.put(new)
    known = {attempt.name for attempt in new.attempts}
    return () if now is None else tuple(a for a in now.attempts if a.name not in known)


def _rename(world: World, source: Address, target: Address, *, force: bool) -> None:
    """Both locks, always in the same order. Killed between its writes, the same command goes on."""
    first, second = sorted((source.deployment, target.deployment))
    with open_session(world, first, "state mv") as one, open_session(world, second, "state mv") as other:
        old, new = (one, other) if first == source.deployment else (other, one)
        if old.is_new:
            raise StateError(f"{source} has no state here.", hint="`tpudeploy state list` names all there are.")
        must_rest(old.state, force=force)
        there = None if new.is_new else new.state
        moved_on = renamed(old.state, target.deployment, there)
        if there is None or there.lineage != moved_on.lineage or there.serial <= moved_on.serial:
            new.save(moved_on)
        published = world.state.published(source.deployment)
        if published is not None:
            world.state.publish(target.deployment, published)
            world.state.publish(source.deployment, None)
        old.delete()
