"""The clock on the wall. `stop` ends every sleep, so that Ctrl-C is heard in each thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tpudeploy.domain import errors


class SystemClock:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_stopped = False

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Raise `errors.Interrupted` once `stop` was called."""
        self._wait(seconds, lambda: False)

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    @contextmanager
    def workers(self) -> Iterator[_Workers]:
        """See `ports.Clock`."""
        yield _Workers(self._changed, self._wait)

    def _wait(self, seconds: float | None, until: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or until(), timeout=seconds)
            if self._is_stopped:
                raise errors.Interrupted(
                    "Interrupted. What was begun is saved.",
                    hint="Run the same command again to go on, or `tpudeploy destroy` to give everything back.",
                )


class _Workers:
    """See `ports.Workers`. Real time passes by itself, so that nobody has to be counted."""

    def __init__(self, changed: threading.Condition, wait: Callable[[float | None, Callable[[], bool]], None]) -> None:
        self._changed = changed
        self.wait = wait

    def start(self) -> None:
        """Nothing to do."""

    def finish(self) -> None:
        with self._changed:
            self._changed.notify_all()
