"""What asking came to, counted: the only word on capacity that there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.gates import Luck
from tpudeploy.domain.history import Ending, Tried

_DAY = 86400.0
_WEEK = 7 * _DAY


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


def rank(of: Luck) -> int:
    """Smaller is asked earlier: what was granted, then what nobody tried of late, then what was just refused."""
    if of.last is Ending.GRANTED:
        return 0
    return 2 if of.last is not None and of.last_age is not None and of.last_age < _DAY else 1
