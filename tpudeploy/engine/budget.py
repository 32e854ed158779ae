"""The creates that the project has left this minute at one API: a token bucket that all runs of one process share.

Why: decision 32 in docs/decisions.md.
"""

from __future__ import annotations

import threading

from tpudeploy.ports import Clock

_BURST = 20
_ROUNDING = 1e-3  # a caller that comes exactly when a create falls due gets it


class CreateBudget:
    """One create in `every` seconds, and `_BURST` at once after a rest. See `ports.Allowance`.

    Google allows 91 creates a minute for a project (`tpu.googleapis.com/qps/create`). Other processes and tools use the
    same quota, so the largest number of a minute here (60 + 20) stays below it. Compute Engine counts apart, and allows
    more (unverified for accelerators), so that each API has a bucket of this size.
    """

    def __init__(self, clock: Clock, *, every: float) -> None:
        self._clock = clock
        self._every = every
        self._tokens = float(_BURST)
        self._filled_at = clock.now()
        self._last_turn = self._filled_at
        self._lock = threading.Lock()

    def available(self) -> int:
        with self._lock:
            self._fill()
            return max(0, int(self._tokens + _ROUNDING))

    def opens_in(self) -> float:
        with self._lock:
            self._fill()
            return max(0.0, 1.0 - self._tokens) * self._every

    def seconds_to_turn(self) -> float:
        with self._lock:
            self._fill()
            opens_at = self._filled_at + max(0.0, 1.0 - self._tokens) * self._every
            self._last_turn = max(self._last_turn + self._every, opens_at)
            return self._last_turn - self._filled_at

    def spend(self) -> None:
        """Take one create, below zero too: what two threads spend at once is waited for."""
        with self._lock:
            self._tokens -= 1.0

    def pause(self, seconds: float) -> None:
        with self._lock:
            self._fill()
            self._tokens = min(self._tokens, -seconds / self._every)

    def _fill(self) -> None:
        now = self._clock.now()
        self._tokens = min(_BURST, self._tokens + max(0.0, now - self._filled_at) / self._every)
        self._filled_at = now
