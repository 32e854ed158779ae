"""What asking came to, counted: the only word on capacity that there is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median

from tpudeploy.domain.availability import Luck
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Refused
from tpudeploy.reconcile.landings import LASTING, Pair, hold_seconds, is_remembered, pair

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
# The grants that were worth nothing.
_FAILED_LANDINGS = frozenset({Ending.STUCK, Ending.PREEMPTED})


def luck(tries: tuple[HistoryEntry, ...], *, now: float, window: float) -> Luck:
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


def acquisition(deployment: Deployment, history: Iterable[HistoryEntry], now: float) -> float:
    """The longest that a grant took lately of such a slice where this deployment may ask, in seconds; 0 for none."""
    places = {(c.zone, c.provisioning) for c in deployment.candidates}
    kind = deployment.accelerator.name
    granted = (t for t in history if t.outcome is Ending.GRANTED and now - t.at <= _WEEK)
    return max((t.waited for t in granted if t.type == kind and (t.zone, t.provisioning) in places), default=0.0)


def score(tries: Iterable[HistoryEntry], now: float) -> float:
    """Weigh what asking came to, lately: a grant speaks for a place, a refusal or a loss against it."""
    weighed = (_WORTH.get(t.outcome, 0.0) * math.pow(0.5, max(0.0, now - t.at) / _HALF_LIFE) for t in tries)
    return math.fsum(weighed)


def scores(history: Iterable[HistoryEntry], kind: str, now: float) -> Mapping[Pair, float]:
    """Return the score of each place where this type of slice was asked for."""
    return {place: score(tries, now) for place, tries in _by_place(history, kind).items()}


def failed_landings(history: Iterable[HistoryEntry], kind: str, now: float) -> tuple[Refused, ...]:
    """Return the last failed landing of each place that the history of this type weighs against, oldest try first.

    A grant that has not lasted yet speaks for nothing: it may be the next one that fails.
    """
    last = []
    for tries in _by_place(history, kind).values():
        failed = _last_failed_landing(tries)
        is_proven = (t for t in tries if t.outcome is not Ending.GRANTED or now - t.at >= LASTING)
        if failed is not None and score(is_proven, now) < 0:
            last.append(failed)
    return tuple(last)


def places_of_failed_landings(history: Iterable[HistoryEntry], kind: str, now: float) -> frozenset[Pair]:
    """Return the places that a search which begins now holds to be doubtful."""
    return frozenset(pair(r) for r in failed_landings(history, kind, now) if is_remembered(r, now))


def _by_place(history: Iterable[HistoryEntry], kind: str) -> Mapping[Pair, list[HistoryEntry]]:
    tries: dict[Pair, list[HistoryEntry]] = {}
    for tried in history:
        if tried.type == kind:
            tries.setdefault((tried.zone, tried.provisioning), []).append(tried)
    return tries


def _last_failed_landing(tries: Iterable[HistoryEntry]) -> Refused | None:
    """With how often in a row it failed. What was asked for before a failure and fails after it says nothing more:
    several slices of one place are taken back together.
    """
    last: Refused | None = None
    for tried in tries:
        if tried.outcome not in _FAILED_LANDINGS:
            continue
        times = 1
        if last is not None and is_remembered(last, tried.at):
            times = last.times + (tried.at - tried.waited >= last.at)
        last = Refused(
            zone=tried.zone,
            provisioning=tried.provisioning,
            kind=tried.kind,
            scope=Scope.PAIR,
            message=tried.text,
            at=tried.at,
            until=tried.at + hold_seconds(tried.kind, times),
            times=times,
            landed=True,
        )
    return last


def preference(usd_per_chip_hour: float | None, score: float, *, is_listed: bool) -> tuple[float, float]:
    """Return what orders places of one provisioning model, smaller first: the price, and at the same price the score.

    `is_listed`: the profile names its zones, and its order holds. The search and `zones` both go by this.
    """
    if is_listed:
        return (0.0, 0.0)
    return (math.inf if usd_per_chip_hour is None else usd_per_chip_hour, -score)
