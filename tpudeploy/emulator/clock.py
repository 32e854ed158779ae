"""Time for the emulator: real, real and faster, or virtual and shared with the tests."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tpudeploy.domain.pace import Pace


class EmulatorClock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None: ...

    def real_seconds(self, seconds: float) -> float:
        """Return the real seconds in a number of seconds of this clock."""
        ...


class RealClock:
    """Real time, or one that runs `speed` times as fast from the moment at which the clock is made."""

    def __init__(self, speed: float = 1.0) -> None:
        self.pace = Pace(origin=time.time(), speed=speed)

    def now(self) -> float:
        return self.pace.moment(time.time())

    def sleep(self, seconds: float) -> None:
        time.sleep(self.real_seconds(seconds))

    def real_seconds(self, seconds: float) -> float:
        return self.pace.real_seconds(seconds)


class VirtualClock:
    """Time passes only in `sleep`, at once. After each step every `on_advance` hook runs (the emulator settles there).

    Threads that work side by side share the time (`workers`): there it passes only once each of them sleeps, or waits
    for a reply that is slow, and then to the earliest moment that one of them waits for. So of two threads that sleep
    for a minute, both have slept once a minute has passed.

    Threads that wait for virtual time (a sleeping startup script) wait in `wait_for_change`.
    """

    def __init__(self, start: float = 1_790_000_000.0) -> None:
        self._time = _Time(start)
        self.on_advance: list[Callable[[], None]] = []

    def now(self) -> float:
        return self._time.now

    def sleep(self, seconds: float) -> None:
        time_ = self._time
        with time_.changed:
            if seconds > 0 and time_.is_shared:
                time_.sleep_beside_others(time_.now + seconds)
                return
            time_.now += max(0.0, seconds)
            time_.changed.notify_all()
        self._run_hooks()

    def real_seconds(self, seconds: float) -> float:  # noqa: ARG002 - one signature for all clocks
        """Return 0: time passes at once."""
        return 0.0

    def stop(self) -> None:
        """Wake the workers: no other sleep here lasts."""
        self._time.wake_all()

    @contextmanager
    def workers(self) -> Iterator[_VirtualWorkers]:
        """See `ports.Clock`. At its end time passes at once again, also for threads that still sleep."""
        workers = _VirtualWorkers(self._time, self._run_hooks)
        try:
            yield workers
        finally:
            workers.close()

    def wait_for_change(self, moment: float, *, patience: float) -> None:
        """Block until time passes, before `moment` or at it, until `rouse`, or for `patience` real seconds."""
        with self._time.changed:
            if self._time.now < moment:
                self._time.changed.wait(patience)

    def rouse(self) -> None:
        """Let the threads in `wait_for_change` see for themselves whether to wait on."""
        with self._time.changed:
            self._time.changed.notify_all()

    def _run_hooks(self) -> None:
        for hook in tuple(self.on_advance):
            hook()


class _Time:
    """The state that the threads of one virtual clock share. `changed` guards it."""

    def __init__(self, start: float) -> None:
        self.now = start
        self.changed = threading.Condition()
        self.busy = 0  # threads at work side by side, those that sleep included
        self.limits: list[float] = []  # the moments until which threads wait for the workers
        self._asleep: list[float] = []  # the moments until which threads sleep
        self._settled = start  # the moment that the hooks have run for
        self._is_settling = False

    @property
    def is_shared(self) -> bool:
        """Whether a sleep waits for the other threads. Not in a hook: it may be a user's command, on the very thread
        that every worker waits for.
        """
        return self.busy > 0 and not self._is_settling

    @property
    def is_quiet(self) -> bool:
        """Whether every thread at work waits for time to pass."""
        return sum(moment > self._settled for moment in self._asleep) >= self.busy

    def sleep_beside_others(self, moment: float) -> None:
        self._asleep.append(moment)
        self.changed.notify_all()
        self.changed.wait_for(lambda: self._settled >= moment or not self.busy)
        self._asleep.remove(moment)
        self.now = max(self.now, moment)

    def wake_all(self) -> None:
        with self.changed:
            self._settled = self.now = max([self.now, *self._asleep])
            self.changed.notify_all()

    def advance(self, run_hooks: Callable[[], None]) -> None:
        """Let time pass to the earliest moment that a thread waits for. Sleepers wake once the hooks have run."""
        with self.changed:
            # A thread that is awake but has not resumed its work yet waits for nothing.
            self.now = min(moment for moment in (*self._asleep, *self.limits) if moment > self.now)
            self._is_settling = True
            self.changed.notify_all()
        try:
            run_hooks()
        finally:
            with self.changed:
                self._settled, self._is_settling = self.now, False
                self.changed.notify_all()


class _VirtualWorkers:
    """See `ports.Workers`."""

    def __init__(self, time_: _Time, run_hooks: Callable[[], None]) -> None:
        self._time = time_
        self._run_hooks = run_hooks
        self._busy = 0

    def start(self) -> None:
        with self._time.changed:
            self._busy += 1
            self._time.busy += 1

    def finish(self) -> None:
        with self._time.changed:
            if self._busy:  # else this is closed
                self._busy -= 1
                self._time.busy -= 1
            self._time.changed.notify_all()

    def close(self) -> None:
        with self._time.changed:
            self._time.busy -= self._busy
            self._busy = 0
            self._time.changed.notify_all()

    def wait(self, seconds: float | None, until: Callable[[], bool]) -> None:
        time_ = self._time
        limit = math.inf if seconds is None else time_.now + seconds
        if limit <= time_.now:
            return
        time_.limits.append(limit)
        try:
            while time_.now < limit:
                with time_.changed:
                    time_.changed.wait_for(lambda: until() or time_.is_quiet)
                    if until():
                        return
                time_.advance(self._run_hooks)
        finally:
            time_.limits.remove(limit)
