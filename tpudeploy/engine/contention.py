"""Whose lock it is that stops us, as an event in fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpudeploy.domain import errors, events
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.errors import StateLocked
from tpudeploy.domain.lock import LockInfo
from tpudeploy.ports import World


def tell_holder(world: World, name: str, locked: StateLocked) -> None:
    """`name` is the deployment's. Where the lock does not say whose it is, only that it is held."""
    holder = locked.holder
    world.emit(
        events.LockHeld(
            at=world.clock.now(),
            address=name,
            id=holder.id if holder else "",
            operation=holder.operation if holder else "",
            who=holder.who if holder else "",
            host=holder.host if holder else "",
            pid=holder.pid if holder else None,
            created=holder.created if holder else None,
            heartbeat=holder.heartbeat if holder else None,
            run_url=holder.run_url if holder else "",
        )
    )


def tell_takeover(world: World, name: str, expired: LockInfo) -> None:
    """Say whose lock was taken over."""
    run = f"{expired.who} (process {expired.pid}, `{expired.operation}`)"
    message = f"Took over the lock of {name} from {run}: that run was not heard of for so long that it must be dead."
    hint = "If it is alive after all, it stops before it writes, or asks Google for, anything more."
    world.emit(events.Warned(at=world.clock.now(), address=name, message=message, hint=hint))


def left_locks(world: World, names: Iterable[str]) -> Mapping[str, StateLocked]:
    """Return the locks of these deployments that a run which was killed may have left behind.

    Nothing rests on it but what a person is told, so whatever keeps us from knowing stops nobody.
    """
    try:
        return world.state.left_locks(names)
    except (errors.StateError, errors.CloudError):
        return {}


def name_left_locks(world: World, names: Iterable[str]) -> tuple[Diagnostic, ...]:
    """Return a warning for each of these locks, with the command that frees it."""
    return tuple(
        Diagnostic(code=locked.code, message=locked.message, severity=Severity.WARNING, hint=locked.hint)
        for locked in left_locks(world, names).values()
    )
