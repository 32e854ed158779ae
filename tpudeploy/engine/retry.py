"""tenacity, in one place: after a fault the whole look is repeated, never the call that failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import tenacity

from tpudeploy.domain import errors, events
from tpudeploy.ports import World

T = TypeVar("T")
_AGAIN = (errors.Fault, errors.StateLocked)


def looking_again(world: World, name: str, tick: Callable[[], T], *, budget: float) -> T:
    """Run `tick`; on a fault wait, growing, and run it again, until `budget` seconds were spent waiting.

    A lock found held in the middle of a run is waited for in the same way: its holder has it for one step.
    Raises what the last tick raised.
    """
    patience = world.patience
    growing = tenacity.wait_exponential(multiplier=patience.fault_first, max=patience.fault_most)

    def wait(call: tenacity.RetryCallState) -> float:
        failure = _failure(call)
        asked = failure.retry_after if isinstance(failure, errors.Fault) else None
        return max(growing(call), asked or 0.0)

    def tell(call: tenacity.RetryCallState) -> None:
        seconds = call.next_action.sleep if call.next_action is not None else 0.0
        world.emit(events.Retrying(at=world.clock.now(), address=name, message=str(_failure(call)), seconds=seconds))

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_AGAIN),
        stop=lambda call: call.idle_for >= budget,
        wait=wait,
        sleep=world.clock.sleep,
        before_sleep=tell,
        reraise=True,
    )(tick)


def _failure(call: tenacity.RetryCallState) -> BaseException | None:
    return call.outcome.exception() if call.outcome is not None else None
