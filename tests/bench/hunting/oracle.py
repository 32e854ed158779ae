"""Bounds: the oracle, which knows every window, and what so many requests can reach at best that know none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.hunting.courses import fails_fast
from bench.hunting.setting import ANSWER, HORIZON, LASTING
from bench.hunting.worlds import Place, Window, World

from tpudeploy.domain.deployment import Provisioning


def oracle(world: World) -> float:
    """When the first slice can be usable, in seconds; infinite where none can. It asks at the very start of each window
    in every zone, and nobody is sooner.
    """
    boot = world.setting.boot
    places = [place for place in world.places if place.offers and place.has_quota]
    return min((_soonest(place, tuple(place.offers), boot) for place in places), default=math.inf) + boot


def floor(world: World, requests: int | None, models: Sequence[Provisioning]) -> float:
    """When the first slice can be usable for a policy that knows no window and makes no mistake, in seconds.

    `requests` at once (None: any number); half of them queue where both kinds of requests may be made. Those that fail
    fast go round without a rest, each zone again as soon as it is its turn. A grant that does not last costs no time,
    and no zone is asked that is known to give none. A policy can be luckier in a world, where its rounds fall otherwise
    or it queues elsewhere; over many worlds another share of queues is worth 2 %.
    """
    setting = world.setting
    open_to = [place for place in world.places if place.has_quota]
    queues = _offering(open_to, [m for m in models if not fails_fast(m, setting.refusals)])
    sweeps = _offering(open_to, [m for m in models if fails_fast(m, setting.refusals)])
    if requests is not None:
        both = bool(queues) and bool(sweeps)
        queues = queues[: requests // 2 if both else requests]
    waiting = {place.zone for place, _ in queues}
    sweeps = [(place, model) for place, model in sweeps if place.zone not in waiting]
    at_once = len(sweeps) if requests is None else requests - len(queues)
    soonest = [_soonest(place, (model,), setting.boot) for place, model in queues]
    if sweeps and at_once:
        a_round = math.ceil(len(sweeps) / at_once) * ANSWER
        for number, (place, model) in enumerate(sweeps):
            first = ANSWER * (1 + number // at_once)
            soonest.append(_soonest(place, (model,), setting.boot, first=first, every=a_round))
    return min(soonest, default=math.inf) + setting.boot


def _offering(places: Sequence[Place], models: Sequence[Provisioning]) -> list[tuple[Place, Provisioning]]:
    return [(place, model) for model in models for place in places if model in place.offers and place.may_last(model)]


def _soonest(
    place: Place, models: Sequence[Provisioning], boot: float, *, first: float = 0.0, every: float | None = None
) -> float:
    """When a slice can land in one zone: asked for at any time, or answered at `first` and then `every` so many seconds.

    A window that provisions slowly can be beaten by the one after it.
    """
    best, at = math.inf, 0.0
    while at < min(best, HORIZON) and (window := place.window(at)) is not None:
        granted = _first_answer(window, first, every)
        lands = granted + window.provisioning
        lasts = any(window.ends_at(model, granted) >= lands + boot + LASTING for model in models)
        if lasts and not window.internal and granted < window.closes:
            best = min(best, lands)
        at = window.closes
    return best


def _first_answer(window: Window, first: float, every: float | None) -> float:
    """The first answer from the beginning of a window on."""
    opens = max(window.opens, first)
    return opens if every is None else first + math.ceil((opens - first) / every) * every
