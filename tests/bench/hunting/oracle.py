"""The oracle: who knows every window in every zone, and asks at its very start. Nobody is sooner."""

from __future__ import annotations

import math

from bench.hunting.setting import HORIZON
from bench.hunting.worlds import Place, World


def oracle(world: World) -> float:
    """When the first slice can be usable, in seconds; infinite where none can."""
    return min((_soonest(place) for place in world.places if place.offers), default=math.inf)


def _soonest(place: Place) -> float:
    """In one zone. A window that provisions slowly can be beaten by the one after it."""
    best, at = math.inf, 0.0
    while at < min(best, HORIZON) and (window := place.window(at)) is not None:
        if not window.internal:
            best = min(best, max(window.opens, 0.0) + window.provisioning)
        at = window.closes
    return best
