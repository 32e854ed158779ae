"""The threads and calls of a node that wait for its clock, and until when: a test sees here that nothing moves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tpudeploy.emulator.clock import EmulatorClock, VirtualClock
from tpudeploy.emulator.http_server import never

TICK = 0.02  # real seconds between two looks at what has no condition variable
_UNNOTICED = 0.5  # real seconds to a look of a thread that waits for virtual time at what nobody roused it for
DEADLINE = 300.0  # real seconds for what a process or a thread does within moments, unless the machine is very busy
SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a process that calls the node's server, SCRIPT or a unit; and whether the process was killed."""

    owner: str
    is_gone: Callable[[], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Nap:
    """`is_call`: a process waits for its call to return."""

    owner: str
    until: float
    woken: Callable[[], bool]
    alarm: threading.Event
    is_call: bool


class Sleepers:
    """A wait ends when the clock says so, when `woken` says so, or when all are woken: at a reboot, at the end."""

    def __init__(self, clock: EmulatorClock) -> None:
        self.clock = clock
        self._naps: list[Nap] = []
        self._alarm = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.local()

    @contextmanager
    def called_by(self, caller: Caller) -> Iterator[None]:
        """Answer `caller` on this thread: within, `wait` is its wait."""
        self._thread.caller = caller
        try:
            yield
        finally:
            self._thread.caller = None

    def wait(self, seconds: float, woken: Callable[[], bool] = never) -> None:
        """Let the caller wait, but no longer once it was killed."""
        caller: Caller | None = getattr(self._thread, "caller", None)
        until = self.clock.now() + seconds
        if caller is None:  # something other than a shim calls the metadata server
            self._nap(Nap(SCRIPT, until, woken, self._alarm, is_call=False))
        else:
            is_gone = caller.is_gone
            self._nap(Nap(caller.owner, until, lambda: woken() or is_gone(), self._alarm, is_call=True))

    def sleep_until(self, owner: str, moment: float, woken: Callable[[], bool] = never) -> None:
        self._nap(Nap(owner, moment, woken, self._alarm, is_call=False))

    def _nap(self, nap: Nap) -> None:
        with self._lock:
            self._naps.append(nap)
        try:
            while self._continues(nap):
                self._wait(nap)
        finally:
            with self._lock:
                self._naps.remove(nap)

    def naps(self, owner: str) -> tuple[bool, ...]:
        """Return for each nap of this owner whether it continues."""
        with self._lock:
            naps = [nap for nap in self._naps if nap.owner == owner]
        return self._see(naps)

    def next_moment(self) -> float | None:
        """Return when the first of those that wait for time continues; None where none does."""
        with self._lock:
            return min((nap.until for nap in self._naps if nap.until > self.clock.now()), default=None)

    def calls(self) -> tuple[bool, ...]:
        """Return for each call under way that waits whether its wait continues."""
        with self._lock:
            naps = [nap for nap in self._naps if nap.is_call]
        return self._see(naps)

    def wake_all(self, *, for_good: bool = False) -> None:
        with self._lock:
            self._alarm.set()
            if not for_good:
                self._alarm = threading.Event()
        self._rouse()

    @property
    def closed(self) -> bool:
        return self._alarm.is_set()

    def _see(self, naps: Sequence[Nap]) -> tuple[bool, ...]:
        """Return for each nap whether it continues. The thread of one that does not may not know it yet: rouse it."""
        continues = tuple(map(self._continues, naps))
        if not all(continues):
            self._rouse()
        return continues

    def _rouse(self) -> None:
        if isinstance(self.clock, VirtualClock):
            self.clock.rouse()

    def _continues(self, nap: Nap) -> bool:
        return nap.until > self.clock.now() and not nap.alarm.is_set() and not nap.woken()

    def _wait(self, nap: Nap) -> None:
        if isinstance(self.clock, VirtualClock):
            self.clock.wait_for_change(nap.until, patience=_UNNOTICED)
        else:
            longest = TICK if nap.woken is not never else threading.TIMEOUT_MAX
            nap.alarm.wait(min(self.clock.real_seconds(nap.until - self.clock.now()), longest))
