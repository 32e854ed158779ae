"""What happens when: deeds in order of their moment. Nothing here runs by itself; somebody tells it the time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Deed = Callable[[float], None]


class Agenda:
    """A deed is told the moment it was due, not the moment it is done: a long sleep ages a slice step by step."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Deed]] = []
        self._order = count()

    def add(self, moment: float, deed: Deed) -> None:
        heapq.heappush(self._due, (moment, next(self._order), deed))

    def run(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            moment, _, deed = heapq.heappop(self._due)
            deed(moment)

    def next_moment(self) -> float | None:
        return self._due[0][0] if self._due else None
