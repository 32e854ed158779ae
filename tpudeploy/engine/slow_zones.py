"""The zones whose replies take long: they are called seldom, so that the search continues at the pace of the others.

Why: decision 80 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median

from tpudeploy.domain.deployment import Area
from tpudeploy.ports import Clock

# A zone is slow if a call takes this number of seconds, and this number of times as long as in the median zone.
_SLOW, _TIMES = 5.0, 3.0
# After a slow call, a zone rests for this number of times its length: at most a fifth of a run goes to it.
_REST = 4.0


class SlowZones:
    """How long the last call about each zone took, at each API, and until when the slow ones rest.

    Where all zones are slow, none rests: to wait would gain nothing.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: dict[Area, float] = {}
        self._rests_until: dict[Area, float] = {}

    @contextmanager
    def timed(self, area: Area) -> Iterator[None]:
        """Time the calls about one zone, whatever their result."""
        began = self._clock.now()
        try:
            yield
        finally:
            now = self._clock.now()
            self._seconds[area] = now - began
            if self._is_slow(area):
                self._rests_until[area] = now + _REST * (now - began)

    def resting(self) -> Mapping[Area, float]:
        """Return until when each slow zone is not to be called, in seconds since the epoch."""
        now = self._clock.now()
        return {area: until for area, until in self._rests_until.items() if until > now}

    def _is_slow(self, area: Area) -> bool:
        others = [seconds for other, seconds in self._seconds.items() if other != area]
        return bool(others) and self._seconds[area] >= max(_SLOW, _TIMES * median(others))
