"""Who on a node waits for the node's clock, and until when; how a test knows that nothing moves any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tpudeploy.emulator.clock import Clock, VirtualClock

TICK = 0.02  # real seconds between two looks at what no condition variable tells
SCRIPT = "script"


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose process calls the node's server: the startup script's (SCRIPT) or a unit's; and whether it was killed."""

    who: str
    is_gone: Callable[[], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Nap:
    """`is_call`: a process waits for its call to return."""

    who: str
    until: float
    woken: Callable[[], bool]
    alarm: threading.Event
    is_call: bool


class Sleepers:
    """A wait ends when the clock says so, when `woken` says so, or when everybody is woken: at a reboot, at the end."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._naps: list[Nap] = []
        self._alarm = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.local()

    @contextmanager
    def called_by(self, caller: Caller) -> Iterator[None]:
        """Within, this thread answers `caller`: `wait` is its wait."""
        self._thread.caller = caller
        try:
            yield
        finally:
            self._thread.caller = None

    def wait(self, seconds: float, woken: Callable[[], bool] = never) -> None:
        """The caller waits, and no longer once it was killed."""
        caller: Caller | None = getattr(self._thread, "caller", None)
        until = self.clock.now() + seconds
        if caller is None:  # the metadata server is asked by something else than a shim
            self._nap(Nap(SCRIPT, until, woken, self._alarm, is_call=False))
        else:
            ended = caller.is_gone
            self._nap(Nap(caller.who, until, lambda: woken() or ended(), self._alarm, is_call=True))

    def sleep_until(self, who: str, moment: float, woken: Callable[[], bool] = never) -> None:
        self._nap(Nap(who, moment, woken, self._alarm, is_call=False))

    def _nap(self, nap: Nap) -> None:
        with self._lock:
            self._naps.append(nap)
        try:
            while self._sleeps_on(nap):
                self._wait(nap)
        finally:
            with self._lock:
                self._naps.remove(nap)

    def naps(self, who: str) -> tuple[bool, ...]:
        """One entry per nap of `who`: does it sleep on?"""
        with self._lock:
            mine = [nap for nap in self._naps if nap.who == who]
        return tuple(self._sleeps_on(nap) for nap in mine)

    def next_moment(self) -> float | None:
        """When the first of those who wait for time goes on; None where nobody does."""
        with self._lock:
            return min((nap.until for nap in self._naps if nap.until > self.clock.now()), default=None)

    def calls(self) -> tuple[bool, ...]:
        """One entry per call under way that waits: does it wait on?"""
        with self._lock:
            waiting = [nap for nap in self._naps if nap.is_call]
        return tuple(self._sleeps_on(nap) for nap in waiting)

    def wake_all(self, *, for_good: bool = False) -> None:
        with self._lock:
            self._alarm.set()
            if not for_good:
                self._alarm = threading.Event()

    @property
    def closed(self) -> bool:
        return self._alarm.is_set()

    def _sleeps_on(self, nap: Nap) -> bool:
        return nap.until > self.clock.now() and not nap.alarm.is_set() and not nap.woken()

    def _wait(self, nap: Nap) -> None:
        if isinstance(self.clock, VirtualClock):
            self.clock.wait_until(nap.until, patience=TICK)
        else:
            longest = TICK if nap.woken is not never else threading.TIMEOUT_MAX
            nap.alarm.wait(min(self.clock.real_seconds(nap.until - self.clock.now()), longest))
