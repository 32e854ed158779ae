"""The system clock. `stop` ends every sleep, so that Ctrl-C takes effect in each thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tpudeploy.domain import errors
from tpudeploy.domain.pace import VARIABLE, Pace

_REAL = Pace(origin=0.0, speed=1.0)


class SystemClock:
    """Gives real time, or an emulator's time if that runs faster. Raise ConfigError for a malformed pace."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_stopped = False
        # Without an emulator the variable is ignored, because the time of a real cloud is real.
        pace = os.environ.get(VARIABLE) if os.environ.get("TPU_EMULATOR_HOST") else None
        self._pace = Pace.parse(pace) if pace else _REAL

    def now(self) -> float:
        return self._pace.moment(time.time())

    def real_seconds(self, seconds: float) -> float:
        """Return how long this time takes for a server that an emulator's time does not move."""
        return self._pace.real_seconds(seconds)

    def sleep(self, seconds: float) -> None:
        """Raise `errors.Interrupted` once `stop` was called."""
        self._wait(seconds, lambda: False)

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Let new sleeps last again."""
        with self._changed:
            self._is_stopped = False

    @contextmanager
    def workers(self) -> Iterator[_ThreadWorkers]:
        """See `ports.Clock`."""
        yield _ThreadWorkers(self._changed, self._wait)

    def _wait(self, seconds: float | None, until: Callable[[], bool]) -> None:
        timeout = None if seconds is None else self._pace.real_seconds(seconds)
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or until(), timeout=timeout)
            if self._is_stopped:
                raise errors.Interrupted(
                    "Interrupted. Work in progress is saved.",
                    hint="Run the same command again to continue, or `tpudeploy destroy` to delete everything.",
                )


class _ThreadWorkers:
    """See `ports.Workers`. Real time passes by itself, so the threads need not be counted."""

    def __init__(self, changed: threading.Condition, wait: Callable[[float | None, Callable[[], bool]], None]) -> None:
        self._changed = changed
        self.wait = wait

    def start(self) -> None:
        """Nothing to do."""

    def finish(self) -> None:
        with self._changed:
            self._changed.notify_all()
