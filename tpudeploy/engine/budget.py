"""How many creates the project has left this minute: a token bucket that all runs of one process share."""

from __future__ import annotations

import threading

from tpudeploy.ports import Clock

_BURST = 20
_ROUNDING = 1e-3  # whoever comes when one falls due finds it whole


class CreateBudget:
    """One create in `every` seconds, and `_BURST` at once after a rest. See `ports.Allowance`.

    Google takes 91 creates a minute from a project (`tpu.googleapis.com/qps/create`); other processes and tools draw
    from the same, so the worst minute here (60 + 20) stays below.
    """

    def __init__(self, clock: Clock, *, every: float) -> None:
        self._clock = clock
        self._every = every
        self._left = float(_BURST)
        self._at = clock.now()
        self._last_turn = self._at
        self._lock = threading.Lock()

    def left(self) -> int:
        with self._lock:
            self._fill()
            return max(0, int(self._left + _ROUNDING))

    def opens_in(self) -> float:
        with self._lock:
            self._fill()
            return max(0.0, 1.0 - self._left) * self._every

    def turn(self) -> float:
        with self._lock:
            self._fill()
            opens = self._at + max(0.0, 1.0 - self._left) * self._every
            self._last_turn = max(self._last_turn + self._every, opens)
            return self._last_turn - self._at

    def spend(self) -> None:
        """Below zero too: what two threads spent at once is waited for."""
        with self._lock:
            self._left -= 1.0

    def pause(self, seconds: float) -> None:
        with self._lock:
            self._fill()
            self._left = min(self._left, -seconds / self._every)

    def _fill(self) -> None:
        now = self._clock.now()
        self._left = min(_BURST, self._left + max(0.0, now - self._at) / self._every)
        self._at = now
