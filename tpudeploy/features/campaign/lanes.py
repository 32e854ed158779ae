"""Lanes: which servers share a slice, in which order, for how long and for how much; and which lanes start next.

A lane is one deployment. Another model or flag is a change in place, so that a lane hunts for its slice once. Whatever
needs another slice (its type, its API) is in another lane.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.plan import Effect
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.campaign.chip_limits import ChipLimits
from tpudeploy.node.fingerprint import effect
from tpudeploy.pins import unpinned

_HOUR, _MINUTE = 3600.0, 60.0
_DIGITS = 12
# Seconds from the grant of a slice until its container starts: the machine boots and fetches the image. Unverified;
# published boots took two to six minutes.
MACHINE = 300.0
_UNSIZED_COLD, _UNSIZED_WARM = 1500.0, 600.0  # of a start that sizing cannot predict: the slowest published ones
_WORST_START = 1.5  # times the predicted cold start
_WORST_CELL = 3.0  # times its window: warm-up, window, and the wait for what is under way
_LIKELY_CELL = 0.5  # of a window that is the most, not the whole
QUESTIONS = 180.0  # seconds in which a server answers the questions; worst: three times
# The names that a campaign gives, or that follow from them.
_NAMES = frozenset({"serving.container_name"})
_ROUNDING = 1e-6
_ENDLESS = 10**6  # minutes
_ENOUGH = 1.3  # times the likely duration: a lane that is cut off starts cold again


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignServer:
    """One combination of the grid: `values` by their paths, and the lane whose slice it runs on.

    `key` is a hash of the resolved profile without names; `programs` is equal for servers of which one compiles for the
    other. Starts are in seconds, None where sizing does not know. `points` are the loads that it can serve, and
    `impossible` those that it cannot, each with the reason.
    """

    key: str
    label: str
    values: Mapping[str, Json]
    lane: str
    model: str
    type: str
    programs: str
    cold_seconds: float | None
    warm_seconds: float | None
    points: tuple[Point, ...]
    impossible: tuple[tuple[Point, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTurn:
    """A server's place in its lane, with the loads that remain. `repeat` counts from 1."""

    server: CampaignServer
    repeat: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignLane:
    """A slice and its turns. Prices are per hour of the whole slice, likely and at most; None where unknown.

    `before_serving` are the seconds that a request may cost at most before its end begins to count: until it is
    granted, seen and serving.
    """

    name: str
    type: str
    generation: str
    chips: int
    usd_per_hour: float | None
    usd_per_hour_most: float | None
    before_serving: float
    turns: tuple[LaneTurn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTimes:
    """How long one cell is measured: its window, and whether that is the whole or the most. `asks`: questions too."""

    window: float
    is_whole: bool
    asks: bool

    @property
    def likely(self) -> float:
        return self.window * (1.2 if self.is_whole else _LIKELY_CELL)

    @property
    def most(self) -> float:
        return self.window * _WORST_CELL


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneNeed:
    """What a lane takes until its turns are over, in seconds from its grant, and in USD. USD are None if unknown."""

    likely_seconds: float
    most_seconds: float
    least_seconds: float
    likely_usd: float | None
    most_usd: float | None

    @property
    def end_minutes(self) -> int:
        """The end of the lane after it first serves, in whole minutes."""
        return ceil(self.most_seconds / _MINUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStart:
    """A lane that may start now, and the minutes after which its slice ends."""

    name: str
    end_minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRoom:
    """The lanes that run, their limits, the USD that are free, None without a limit, and the minutes until the end."""

    running: tuple[CampaignLane, ...]
    limits: ChipLimits
    usd: float | None
    minutes: int

    def has_chips(self, lane: CampaignLane) -> bool:
        return self.limits.has_room(lane.generation, lane.chips, map(_chips, self.running))

    def beside(self, lane: CampaignLane, minutes: int) -> LaneRoom:
        """Return the room beside a lane that ends after this number of minutes."""
        usd = None if self.usd is None else self.usd - _most_usd(lane, minutes)
        return replace(self, running=(*self.running, lane), usd=usd)


def server_key(attributes: Mapping[str, Json]) -> str:
    """Return the hash of a resolved profile without its names, its pins, and what no server shows."""
    attributes = {
        path: value
        for path, value in unpinned(attributes).items()
        if effect(path) is not Effect.COSMETIC and path not in _NAMES
    }
    return _hash(attributes)


def cell_key(server: str, point: Point, repeat: int) -> str:
    """Return the key of one cell: of its server, its load, and which of the repeats it is."""
    return _hash({"server": server, "load": list(point.sizes), "repeat": repeat})


def in_order(servers: Iterable[CampaignServer]) -> tuple[CampaignServer, ...]:
    """Return the servers of a lane in the order with the fewest cold starts, that of the grid among equals.

    Programs that were compiled once are in the compile cache of the slice. If Google takes the slice, the cache is gone
    with it, and no more programs have to be compiled again than those of the servers that remain: so servers of one
    model, and of one set of programs, are neighbours.
    """
    listed = tuple(servers)
    models = list(dict.fromkeys(server.model for server in listed))
    programs = list(dict.fromkeys(server.programs for server in listed))
    return tuple(sorted(listed, key=lambda each: (models.index(each.model), programs.index(each.programs))))


def turns(servers: Iterable[CampaignServer], repeats: int) -> tuple[LaneTurn, ...]:
    """Return the turns of a lane: all servers once, then all of them again, so that each repeat has its own start."""
    ordered = in_order(servers)
    rounds = range(1, repeats + 1)
    return tuple(LaneTurn(server=each, repeat=number, points=each.points) for number in rounds for each in ordered)


def cold_starts(lane_turns: Iterable[LaneTurn]) -> int:
    """Return how many starts have to compile, if the slice stays."""
    return len({turn.server.programs for turn in lane_turns})


def need(lane: CampaignLane, cells: CellTimes) -> LaneNeed:
    """Return what the turns of a lane take from the grant of its slice on. At most: one slice is lost on the way."""
    likely = most = MACHINE
    compiled: set[str] = set()
    for turn in lane.turns:
        cold, warm = _starts(turn.server)
        likely += warm if turn.server.programs in compiled else cold
        most += cold * _WORST_START
        compiled.add(turn.server.programs)
        likely += len(turn.points) * cells.likely + (QUESTIONS if cells.asks and turn.repeat == 1 else 0.0)
        most += len(turn.points) * cells.most + (3 * QUESTIONS if cells.asks and turn.repeat == 1 else 0.0)
    first = max((_starts(turn.server)[0] for turn in lane.turns[:1]), default=0.0)
    most += MACHINE + first * _WORST_START if lane.turns else 0.0
    return LaneNeed(
        likely_seconds=likely,
        most_seconds=most,
        least_seconds=first + cells.most,
        likely_usd=_usd(lane.usd_per_hour, likely),
        most_usd=_usd(lane.usd_per_hour_most, ceil(most / _MINUTE) * _MINUTE + lane.before_serving),
    )


def next_lanes(
    waiting: Sequence[CampaignLane],
    cells: CellTimes,
    *,
    running: Sequence[CampaignLane],
    limits: ChipLimits,
    usd_free: float | None,
    seconds_left: float,
) -> tuple[LaneStart, ...]:
    """Return the lanes to start now, the longest first, within the limits of chips and what the budget has left.

    A lane starts if the budget has room for the worst that it may cost, or, with an earlier end, for well more than it
    is likely to. If it has not and no lane is running, the cheapest one starts with what there is, unless not even its
    first server would come to a cell.
    """
    starts: list[LaneStart] = []
    needs = {lane.name: need(lane, cells) for lane in waiting}
    room = LaneRoom(running=tuple(running), limits=limits, usd=usd_free, minutes=int(seconds_left / _MINUTE))
    for lane in sorted(waiting, key=lambda each: -needs[each.name].likely_seconds):
        minutes = _start_minutes(lane, needs[lane.name], room)
        if minutes is not None:
            starts.append(LaneStart(name=lane.name, end_minutes=max(1, min(minutes, room.minutes))))
            room = room.beside(lane, minutes)
    if starts or running or usd_free is None:
        return tuple(starts)
    for lane in sorted(waiting, key=lambda each: needs[each.name].likely_usd or 0.0):
        minutes = _affordable_minutes(lane, usd_free)
        if room.has_chips(lane) and minutes * _MINUTE >= needs[lane.name].least_seconds:
            return (LaneStart(name=lane.name, end_minutes=max(1, min(minutes, room.minutes))),)
    return ()


def _start_minutes(lane: CampaignLane, own: LaneNeed, room: LaneRoom) -> int | None:
    """Return the end of a lane for which there is room, or None if it has to wait."""
    if not room.has_chips(lane):
        return None
    minutes = min(own.end_minutes, _affordable_minutes(lane, room.usd))
    is_enough = minutes == own.end_minutes or minutes * _MINUTE >= _ENOUGH * own.likely_seconds
    return minutes if is_enough else None


def _affordable_minutes(lane: CampaignLane, usd: float | None) -> int:
    """Return the latest end for which a budget has room. Without a price, a budget has room for none."""
    if usd is None:
        return _ENDLESS
    if lane.usd_per_hour_most is None:
        return 0
    return max(0, int((usd / lane.usd_per_hour_most * _HOUR - lane.before_serving) / _MINUTE + _ROUNDING))


def _most_usd(lane: CampaignLane, minutes: int) -> float:
    return (lane.usd_per_hour_most or 0.0) * (minutes * _MINUTE + lane.before_serving) / _HOUR


def makespan(lanes: Iterable[CampaignLane], cells: CellTimes, limits: ChipLimits) -> float:
    """Return the likely seconds until all lanes are over, if each is granted at once and the chips suffice."""
    waiting = sorted(lanes, key=lambda each: -need(each, cells).likely_seconds)
    running: list[tuple[float, CampaignLane]] = []
    now = 0.0
    while waiting or running:
        for lane in tuple(waiting):
            if limits.has_room(lane.generation, lane.chips, (_chips(each) for _, each in running)):
                waiting.remove(lane)
                running.append((now + need(lane, cells).likely_seconds, lane))
        if not running:
            break  # what is left needs more chips than there are
        running.sort(key=lambda each: each[0])
        now, _ = running.pop(0)
    return now


def _chips(lane: CampaignLane) -> tuple[str, int]:
    return lane.generation, lane.chips


def _starts(server: CampaignServer) -> tuple[float, float]:
    cold = _UNSIZED_COLD if server.cold_seconds is None else server.cold_seconds
    return cold, (_UNSIZED_WARM if server.warm_seconds is None else server.warm_seconds)


def _usd(price: float | None, seconds: float) -> float | None:
    return None if price is None else price * seconds / _HOUR


def _hash(value: Mapping[str, Json]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
