"""Answers of a simulated node that take their time: a token each so many seconds of the emulator's clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from tpudeploy.emulator.clock import Clock
from tpudeploy.emulator.machine.sleepers import Sleepers

_STREAM = "stream"
_PATIENCE = 10.0  # real seconds in which a thread that has nothing to wait for must have written


class Streams:
    """Which are under way is a matter of the clock alone, however late a thread gets to write: tests rely on it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sleepers = Sleepers(clock)
        self._ends: dict[object, float] = {}
        self._changed = threading.Condition()

    @property
    def running(self) -> int:
        now = self._clock.now()
        with self._changed:
            return sum(end > now for end in self._ends.values())

    def paced(self, chunks: Sequence[bytes], seconds: float) -> Iterator[bytes]:
        """Each of `chunks`, `seconds` after the one before; the first at once."""
        began, mark = self._clock.now(), object()
        with self._changed:
            self._ends[mark] = began + seconds * (len(chunks) - 1)
        return self._written(mark, chunks, began, seconds)

    def settle(self) -> None:
        """Wait until what is over by the clock is written to its end. Raise TimeoutError where it is not."""
        now = self._clock.now()
        with self._changed:
            if not self._changed.wait_for(lambda: all(end > now for end in self._ends.values()), timeout=_PATIENCE):
                raise TimeoutError("a stream is over, and not written to its end")

    def close(self) -> None:
        """Cut off whatever is under way."""
        self._sleepers.wake_all(for_good=True)

    def _written(self, mark: object, chunks: Sequence[bytes], began: float, seconds: float) -> Iterator[bytes]:
        try:
            for number, chunk in enumerate(chunks):
                self._sleepers.sleep_until(_STREAM, began + seconds * number)
                if self._sleepers.closed and self._clock.now() < began + seconds * number:
                    return
                yield chunk
        finally:
            with self._changed:
                self._ends.pop(mark, None)
                self._changed.notify_all()
