"""Whose lock it is that stops us, as an event in fields."""

from __future__ import annotations

from tpudeploy.domain import events
from tpudeploy.domain.errors import StateLocked
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
