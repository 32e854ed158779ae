"""What asking came to, counted: the only word on capacity that there is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median

from tpudeploy.core.landings import Pair
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.gates import Luck
from tpudeploy.domain.history import Ending, Tried

_DAY = 86400.0
_WEEK = 7 * _DAY
# What one experience is worth. A grant that did not last is worth less than none: it was a grant before.
_WORTH = {
    Ending.GRANTED: 1.0,
    Ending.REFUSED: -0.1,
    Ending.LAPSED: -0.5,
    Ending.STUCK: -0.5,
    Ending.PREEMPTED: -1.5,
}
# Seconds in which an experience loses half its weight: capacity comes and goes within hours.
_HALF_LIFE = 6 * 3600.0
# A score within this of 0 says nothing: a refusal of more than a day ago.
_SILENT = 0.006


def luck(tries: tuple[Tried, ...], *, now: float, window: float) -> Luck:
    """Of one pair and type, oldest first. What we gave up ourselves is counted, and says nothing of the place."""
    recent = [t for t in tries if now - t.at <= window]
    told = [t for t in tries if t.outcome is not Ending.RELEASED]
    waits = [t.waited for t in recent if t.outcome is Ending.GRANTED]
    last = told[-1] if told else None
    return Luck(
        last=None if last is None else last.outcome,
        last_kind="" if last is None else last.kind,
        last_age=None if last is None else max(now - last.at, 0.0),
        counts=dict(sorted(Counter(t.outcome for t in recent).items())),
        median_wait=median(waits) if waits else None,
    )


def acquisition(deployment: Deployment, history: Iterable[Tried], now: float) -> float:
    """The longest that a grant took lately of such a slice where this deployment may ask, in seconds; 0 for none."""
    places = {(c.zone, c.provisioning) for c in deployment.candidates}
    kind = deployment.accelerator.name
    granted = (t for t in history if t.outcome is Ending.GRANTED and now - t.at <= _WEEK)
    return max((t.waited for t in granted if t.type == kind and (t.zone, t.provisioning) in places), default=0.0)


def score(tries: Iterable[Tried], now: float) -> float:
    """Weigh what asking came to, lately: a grant speaks for a place, a refusal or a loss against it."""
    weighed = (_WORTH.get(t.outcome, 0.0) * math.pow(0.5, max(0.0, now - t.at) / _HALF_LIFE) for t in tries)
    return math.fsum(weighed)


def scores(history: Iterable[Tried], kind: str, now: float) -> Mapping[Pair, float]:
    """Return the score of each place where this type of slice was asked for."""
    tries: dict[Pair, list[Tried]] = {}
    for tried in history:
        if tried.type == kind:
            tries.setdefault((tried.zone, tried.provisioning), []).append(tried)
    return {place: score(those, now) for place, those in tries.items()}


def rank(of: float) -> int:
    """Return the class of a score. Smaller is asked earlier: what gave, then what says nothing, then what refused."""
    if abs(of) < _SILENT:
        return 1
    return 0 if of > 0 else 2
