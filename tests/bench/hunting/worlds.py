"""Worlds: when each zone has capacity for us. Made lazily, the same for every policy that is tried in them.

A zone by itself alternates: a window (exponential), a gap (lognormal). The gaps that a region shares are droughts: none
of its zones has a window then, and one that stood open has ended. After a drought the zones come back in one of two ways:

* together: a drought *is* a gap of every zone, and the next window opens in all of them at the same moment. Between
  droughts each zone alternates by itself. That time is exponential, so long that `shared` of all gaps are droughts.
* apart: a drought is *part* of a gap of every zone: the zones' own clocks stand still in it and go on after it.
  Droughts take `shared` of the time, and what a zone has of gaps for itself is shorter by as much.

Either way a zone opens about as often as if it were alone: once in mean gap + mean window. Time 0 is a moment like any
other: zones and droughts are found in the middle of what they are in.

What a grant comes to (how long it provisions, whether it ends in code 13, when a spot slice would be preempted) is
drawn with its window: whoever is granted in it gets the same.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from random import Random

from bench.hunting.setting import EARLY, HOUR, MINUTE, NIGHT, PROVISIONING, Apis, Habit, Reopening, Setting

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone

_ALWAYS = (math.inf, math.inf)
_DAY = 24 * HOUR
# What the seeds of the second API's windows and quotas are shifted by.
_OTHER_API = 500


@dataclass(frozen=True, slots=True)
class Window:
    """Capacity for us in one zone, from `opens` until before `closes`.

    `preempted`: seconds after a spot grant. `reclaimed_at`: when spot is taken back at the latest.
    """

    opens: float
    closes: float
    provisioning: float
    internal: bool = False
    preempted: float = math.inf
    reclaimed_at: float = math.inf

    def ends_at(self, model: Provisioning, granted: float) -> float:
        """When Google takes back what was granted then, in seconds; infinite for never."""
        return min(granted + self.preempted, self.reclaimed_at) if model is Provisioning.SPOT else math.inf


class Place:
    """One zone at one API: its windows, made as far as needed, what it offers, and what it does every time."""

    def __init__(
        self,
        zone: Zone,
        windows: Iterator[Window],
        offers: frozenset[Provisioning],
        *,
        habit: Habit = Habit.NONE,
        seed: int = 0,
        has_quota: bool = True,
        backend: Backend = Backend.QUEUED_RESOURCE,
    ) -> None:
        self.zone = zone
        self.backend = backend
        self.offers = offers
        self.has_quota = has_quota
        self.habit = habit
        self._seed = seed
        self._rest = windows
        self._made: list[Window] = []
        self._closes: list[float] = []

    def grant(self, model: Provisioning, at: float) -> Window | None:
        """The window that grants a request of that moment, now or later; None where none ever does.

        By habit a place grants at once, and always. What it then does is drawn for the minute: everybody who asks in
        it gets the same.
        """
        random = Random(self._seed * 1_000_003 + int(at // MINUTE))
        if self.habit is Habit.INTERNAL_ERROR:
            return Window(at, math.inf, random.uniform(*PROVISIONING), internal=True)
        if self.habit is Habit.EARLY_PREEMPTION and model is Provisioning.SPOT:
            lands = random.uniform(*PROVISIONING)
            return Window(at, math.inf, lands, preempted=lands + random.uniform(*EARLY))
        return self.window(at)

    def may_last(self, model: Provisioning) -> bool:
        """Whether what it grants is worth anything."""
        if self.habit is Habit.EARLY_PREEMPTION:
            return model is not Provisioning.SPOT
        return self.habit is not Habit.INTERNAL_ERROR

    def window(self, at: float) -> Window | None:
        """The first of our windows that is open then or opens later; None where none comes any more."""
        while not self._closes or self._closes[-1] <= at:
            world = next(self._rest, None)
            if world is None:
                return None
            self._made.append(world)
            self._closes.append(world.closes)
        return self._made[bisect_right(self._closes, at)]


@dataclass(frozen=True, slots=True)
class World:
    setting: Setting
    places: tuple[Place, ...]

    def of_api(self, backend: Backend) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.backend is backend)


def world(setting: Setting, seed: int, index: int) -> World:
    """The `index`-th world of this kind."""
    first = (seed * 1_000_003 + index) * 1_009
    places = _places(setting, first, first, Backend.QUEUED_RESOURCE)
    if setting.apis is Apis.ONE:
        return World(setting=setting, places=tuple(places))
    windows = first if setting.apis is Apis.ALIKE else first + _OTHER_API
    others = _places(setting, windows, first + _OTHER_API, Backend.GCE_INSTANCE)
    return World(setting=setting, places=(*places, *others))


def _places(setting: Setting, first: int, quota: int, backend: Backend) -> Iterator[Place]:
    """The zones of one API: their windows from the seed `first`, and whether their regions have a quota from `quota`."""
    offering = Random(first)
    regions = [_Region(setting, Random(first + 1 + r)) for r in range(setting.regions)]
    after = first + 1 + setting.regions
    began = Random(first).uniform(0, 24 * HOUR)
    for i, (region, zone) in enumerate(zones(setting)):
        is_flapping = i == 0 and setting.habit is Habit.FLAPPING
        own = _flapping(setting) if is_flapping else setting
        windows = _windows(own, Random(after + i), _Region(own, Random(first)) if is_flapping else regions[region])
        yield Place(
            zone,
            _at_night(windows, began) if setting.night else windows,
            _offers(setting, offering),
            habit=setting.habit if i == 0 else Habit.NONE,
            seed=first,
            has_quota=Random(quota + region).random() >= setting.no_quota,
            backend=backend,
        )


def _flapping(setting: Setting) -> Setting:
    """The setting of a zone that opens every few minutes, for a minute or two, and keeps half of what it gives."""
    return replace(setting, gap=10 * MINUTE, window=2 * MINUTE, shortest=MINUTE, sigma=0.5, code13=0.5, shared=0.0)


def zones(setting: Setting) -> Iterator[tuple[int, Zone]]:
    """Each zone with its region's number. Neighbours stand side by side, as in the catalogue."""
    for i in range(setting.zones):
        region = i * setting.regions // setting.zones
        letter = i - math.ceil(region * setting.zones / setting.regions)
        yield region, Zone(f"region-x{region + 1}-{chr(ord('a') + letter)}")


def _offers(setting: Setting, random: Random) -> frozenset[Provisioning]:
    """What a zone offers: at least one model."""
    flex, spot = random.random() < setting.flex, random.random() < setting.spot
    offered = [Provisioning.FLEX_START] * flex + [Provisioning.SPOT] * (spot or not flex)
    return frozenset(offered)


def _at_night(windows: Iterator[Window], began: float) -> Iterator[Window]:
    """What is left of them at night, where the clock says `began` seconds of the day at time 0."""
    dusk, dawn = NIGHT
    length = (dawn - dusk) % _DAY
    for window in windows:
        night = math.floor((window.opens + began - dusk) / _DAY) * _DAY + dusk - began
        while night < window.closes:
            opens, closes = max(window.opens, night), min(window.closes, night + length)
            if opens < closes and closes > 0:
                yield replace(window, opens=opens, closes=closes, reclaimed_at=night + length)
            night += _DAY


class _Region:
    """The droughts of one region: (begins, ends), in order, for ever. Its zones read them each at its own pace."""

    def __init__(self, setting: Setting, random: Random) -> None:
        # How long ago the last drought ended, if none is on at 0.
        self.age = random.expovariate(1 / _calm(setting)) if setting.shared > 0 else math.inf
        self._rest = _droughts(setting, random)
        self._made: list[tuple[float, float]] = []

    def drought(self, number: int) -> tuple[float, float]:
        while len(self._made) <= number:
            self._made.append(next(self._rest))
        return self._made[number]


def _calm(setting: Setting) -> float:
    """Mean seconds between two droughts."""
    length = setting.mean_gap
    if setting.reopening is Reopening.TOGETHER:
        length += setting.window
    return length * (1 - setting.shared) / setting.shared


def _droughts(setting: Setting, random: Random) -> Iterator[tuple[float, float]]:
    if setting.shared == 0:
        yield from repeat(_ALWAYS)
    calm, ends = _calm(setting), 0.0
    if random.random() < setting.mean_gap / (setting.mean_gap + calm):
        ends = _rest_of_gap(setting, random)
        yield 0.0, ends
    while True:
        begins = ends + random.expovariate(1 / calm)
        ends = begins + _gap(setting, random)
        yield begins, ends


def _windows(setting: Setting, random: Random, region: _Region) -> Iterator[Window]:
    """Those in which we are served."""
    alternate = _together if setting.reopening is Reopening.TOGETHER and setting.shared > 0 else _apart
    for opens, closes in alternate(setting, random, region):
        ours, internal = random.random() < setting.ours, random.random() < setting.code13
        provisioning = random.uniform(*PROVISIONING)
        preempted = random.expovariate(setting.preempt / HOUR) if setting.preempt else math.inf
        if ours and closes > 0:
            yield Window(opens, closes, provisioning, internal, preempted)


def _together(setting: Setting, random: Random, region: _Region) -> Iterator[tuple[float, float]]:
    number = 0
    begins, ends = region.drought(number)
    opens = begins if begins == 0 else -region.age
    while True:
        if opens >= begins:
            opens = ends
            number += 1
            begins, ends = region.drought(number)
        closes = min(opens + _window(setting, random), begins)
        yield opens, closes
        opens = closes + _gap(setting, random)


def _apart(setting: Setting, random: Random, region: _Region) -> Iterator[tuple[float, float]]:
    own = 1 - setting.shared
    number = 0
    begins, ends = region.drought(number)
    is_open = begins > 0 and random.random() < setting.window / (setting.window + own * setting.mean_gap)
    closes, gap = 0.0, 0.0 if is_open else own * _rest_of_gap(setting, random)
    while True:
        while closes + gap >= begins:
            gap -= max(0.0, begins - closes)
            closes = ends
            number += 1
            begins, ends = region.drought(number)
        opens = closes + gap
        closes = min(opens + _window(setting, random), begins)
        yield opens, closes
        gap = own * _gap(setting, random)


def _window(setting: Setting, random: Random) -> float:
    return setting.shortest + random.expovariate(1 / (setting.window - setting.shortest))


def _gap(setting: Setting, random: Random) -> float:
    return random.lognormvariate(math.log(setting.gap), setting.sigma)


def _rest_of_gap(setting: Setting, random: Random) -> float:
    """What is left of a gap that we fall into: long ones are fallen into more often."""
    return random.random() * random.lognormvariate(math.log(setting.gap) + setting.sigma**2, setting.sigma)
