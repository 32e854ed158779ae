"""Time for the emulator: real, or virtual and shared with whoever tests against it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """Time passes only in `sleep`, at once. After each step every `on_advance` hook runs (the emulator settles there).

    Threads that wait for virtual time (a sleeping startup script) wait in `wait_until`.
    """

    def __init__(self, start: float = 1_790_000_000.0) -> None:
        self._now = start
        self._changed = threading.Condition()
        self.on_advance: list[Callable[[], None]] = []

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        with self._changed:
            self._now += max(0.0, seconds)
            self._changed.notify_all()
        for hook in tuple(self.on_advance):
            hook()

    def stop(self) -> None:
        """Nothing to do: no sleep here lasts."""

    def wait_until(self, moment: float, *, patience: float) -> bool:
        """Block until virtual time reaches `moment`; False if `patience` real seconds pass first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._now >= moment, timeout=patience)
