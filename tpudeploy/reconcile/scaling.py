"""How many replicas the load needs now, within the bounds of `scale`: one pure decision after each observation.

| what was read                                                     | next number                       |
|-------------------------------------------------------------------|-----------------------------------|
| the number is outside of the bounds                               | the nearest bound                 |
| a load is unknown                                                 | the same; the trend begins again  |
| more than `waiting` wait for each replica, or their KV caches are | one more, if that lasts for       |
| fuller than `kv_cache`, on average                                | `SUSTAINED` and the cool-down is  |
|                                                                   | over                              |
| ... while a replica does not serve yet                            | the same: it will take its share  |
| ... and one more could cost more than the ceiling                 | the same, and it is said why      |
| nothing waits, and one replica less would be at most half as full | one less, if that lasts for the   |
| as the limits                                                     | cool-down                         |
| anything between                                                  | the same; the trend begins again  |

One step at a time: a slice takes minutes to start, and what it changes shows only then. Between the two limits lies a
factor of two, so that a replica which was removed is not needed again at once. Averages count, because another replica
does not help the requests of a single full one: the router does.

Why: decision 68 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tpudeploy.domain.deployment import Scale
from tpudeploy.domain.slices import ServerLoad

SUSTAINED = 60.0  # seconds: a queue of one observation may be gone at the next one
_LOWER = 0.5  # of the limits, beneath which a replica is not needed


class Tendency(StrEnum):
    """What the load of an observation is, beside the limits."""

    NONE = "none"
    OVER = "over"
    BELOW = "below"


_NO_TENDENCY = (Tendency.NONE, "")  # it leads to no step, so it needs no reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The tendency of the last observations without a gap, and since when."""

    tendency: Tendency = Tendency.NONE
    since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one observation shows. `replicas` are those that are wanted now, of which `loads` are those that serve.

    `least` is the lower bound: that of the profile, or its on-demand floor. `places` is the number of requests that one
    server runs at once, None if it is unknown. `usd_per_hour_next` is the list price of all slices with another one, in
    the dearest place that may be requested, and of the router's VM; None if it is unknown. `scaled_at` is the time of
    the last step, or None.
    """

    replicas: int
    least: int
    loads: Sequence[ServerLoad | None]
    places: int | None
    usd_per_hour_next: float | None
    trend: Trend
    scaled_at: float | None
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The number of replicas from now on, and the trend to remember.

    `why` is the reason for a step, or against one that the load asks for; "" for neither.
    """

    replicas: int
    trend: Trend
    why: str = ""


def decide_scale(scale: Scale, demand: Demand) -> Decision:
    """Return the number of replicas that the load needs."""
    count, most = demand.replicas, max(scale.max, demand.least)
    if not demand.least <= count <= most:
        # The bounds were changed, and approved.
        nearest = min(max(count, demand.least), most)
        return Decision(replicas=nearest, trend=Trend(), why=f"the bounds are {demand.least} to {most}")
    tendency, why = _tendency(scale, demand)
    is_continued = tendency is demand.trend.tendency
    trend = demand.trend if is_continued else Trend(tendency=tendency, since=demand.now)
    lasts = demand.now - trend.since
    has_cooled_down = demand.scaled_at is None or demand.now - demand.scaled_at >= scale.cooldown_seconds
    same = Decision(replicas=count, trend=trend)
    if tendency is Tendency.OVER and count < most and lasts >= SUSTAINED and has_cooled_down:
        if len(demand.loads) < count:
            # What was added last does not serve yet.
            return same
        obstacle = _cost_obstacle(scale, demand)
        if obstacle:
            return Decision(replicas=count, trend=trend, why=obstacle)
        return Decision(replicas=count + 1, trend=Trend(), why=why)
    if tendency is Tendency.BELOW and count > demand.least and lasts >= scale.cooldown_seconds and has_cooled_down:
        return Decision(replicas=count - 1, trend=Trend(), why=why)
    return same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """The load of all replicas that serve, together. `kv_caches` is the sum of the shares in use of their KV caches."""

    serving: int
    waiting: int
    running: int
    kv_caches: float


def _load(demand: Demand) -> _Load | None:
    """Return the load, or None if that of a replica was not read: it could be any load."""
    total = _Load(serving=len(demand.loads), waiting=0, running=0, kv_caches=0.0)
    for load in demand.loads:
        if load is None or load.waiting is None or load.running is None or load.kv_cache_used is None:
            return None
        total = replace(
            total,
            waiting=total.waiting + load.waiting,
            running=total.running + load.running,
            kv_caches=total.kv_caches + load.kv_cache_used,
        )
    # Where nothing serves, nothing shows a load.
    return total if demand.loads else None


def _tendency(scale: Scale, demand: Demand) -> tuple[Tendency, str]:
    """Return the tendency of this observation, and the figures that show it."""
    load = _load(demand)
    if load is None:
        return _NO_TENDENCY
    queue, kv_cache = load.waiting / load.serving, load.kv_caches / load.serving
    if queue > scale.waiting:
        return Tendency.OVER, f"{queue:.3g} requests wait for each replica (scale.waiting: {scale.waiting:g})"
    if kv_cache > scale.kv_cache:
        return Tendency.OVER, f"{kv_cache:.0%} of the KV caches is in use (scale.kv_cache: {scale.kv_cache:g})"
    # A replica that does not serve goes first, and takes no load with it.
    remaining = min(load.serving, demand.replicas - 1)
    if remaining < 1 or load.waiting:
        return _NO_TENDENCY
    room = 0.0 if demand.places is None else _LOWER * demand.places * remaining
    if load.kv_caches / remaining <= _LOWER * scale.kv_cache and load.running <= room:
        return Tendency.BELOW, f"{load.running} requests run, none waits, and the others have room for them"
    return _NO_TENDENCY


def _cost_obstacle(scale: Scale, demand: Demand) -> str:
    """Return why another replica may cost too much, or ""."""
    if scale.max_usd_per_hour is None:
        return ""
    ceiling = f"scale.max_cost_per_hour: {scale.max_usd_per_hour:g}"
    if demand.usd_per_hour_next is None:
        return f"the list price of all of them and the router is not known, and {ceiling}"
    if demand.usd_per_hour_next > scale.max_usd_per_hour:
        return f"with another replica, all may cost ${demand.usd_per_hour_next:.2f}/h ({ceiling})"
    return ""
