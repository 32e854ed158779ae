"""The oracle: who knows every window in every zone, and asks at its very start. Nobody is sooner."""

from __future__ import annotations

import math

from bench.hunting.setting import HORIZON, LASTING
from bench.hunting.worlds import Place, World


def oracle(world: World) -> float:
    """When the first slice can be usable, in seconds; infinite where none can."""
    boot = world.setting.boot
    places = [place for place in world.places if place.offers and place.has_quota]
    return min((_soonest(place, boot) for place in places), default=math.inf) + boot


def _soonest(place: Place, boot: float) -> float:
    """In one zone. A window that provisions slowly can be beaten by the one after it."""
    best, at = math.inf, 0.0
    while at < min(best, HORIZON) and (window := place.window(at)) is not None:
        lands = max(window.opens, 0.0) + window.provisioning
        lasts = any(
            window.ends_at(model, lands - window.provisioning) >= lands + boot + LASTING for model in place.offers
        )
        if lasts and not window.internal:
            best = min(best, lands)
        at = window.closes
    return best
