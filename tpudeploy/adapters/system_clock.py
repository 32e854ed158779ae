"""The clock on the wall. `stop` ends every sleep, so that Ctrl-C is heard in each thread."""

from __future__ import annotations

import threading
import time

from tpudeploy.domain import errors


class SystemClock:
    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Raise `errors.Interrupted` once `stop` was called."""
        if self._stopped.wait(seconds):
            raise errors.Interrupted(
                "Interrupted. What was begun is saved.",
                hint="Run the same command again to go on, or `tpudeploy destroy` to give everything back.",
            )

    def stop(self) -> None:
        self._stopped.set()
