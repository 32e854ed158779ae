"""Retries, in one place: after a fault the whole observation is repeated, never the call that failed.

Why: decision 2 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import tenacity

from tpudeploy.domain import errors, events
from tpudeploy.ports import World

T = TypeVar("T")


def retry_on_fault(world: World, name: str, observe: Callable[[], T], *, budget: float | None = None) -> T:
    """Call `observe`; after a fault wait and call it again, until `budget` seconds were spent waiting.

    The waits grow. The default budget is that of a plan, for which a person waits. A lock that another run holds is
    waited for in the same way: its holder has it for one step. Raise what the last call raised.
    """
    patience = world.patience
    seconds_to_wait = patience.faults_at_plan if budget is None else budget
    growing_wait = tenacity.wait_exponential(multiplier=patience.fault_first, max=patience.fault_most)

    def wait(call: tenacity.RetryCallState) -> float:
        failure = _failure(call)
        requested_wait = failure.retry_after if isinstance(failure, errors.Fault) else None
        return max(growing_wait(call), requested_wait or 0.0)

    def report(call: tenacity.RetryCallState) -> None:
        seconds = call.next_action.sleep if call.next_action is not None else 0.0
        world.emit(events.Retrying(at=world.clock.now(), address=name, message=str(_failure(call)), seconds=seconds))

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((errors.Fault, errors.StateLocked)),
        stop=lambda call: call.idle_for >= seconds_to_wait,
        wait=wait,
        sleep=world.clock.sleep,
        before_sleep=report,
        reraise=True,
    )(observe)


def _failure(call: tenacity.RetryCallState) -> BaseException | None:
    return call.outcome.exception() if call.outcome is not None else None
