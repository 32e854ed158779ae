"""The results of earlier requests as a score for each place. Google publishes no other figure on its capacity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import median

from tpudeploy.domain.availability import Luck
from tpudeploy.domain.deployment import Deployment, Place
from tpudeploy.domain.history import Ending, HistoryEntry
from tpudeploy.domain.slices import RefusalScope
from tpudeploy.domain.state import RefusalRecord
from tpudeploy.reconcile.failed_landings import LASTING, hold_seconds, makes_doubtful

_WEEK = 7 * 86400.0
# The weight of one result. A grant that did not last also counted as a grant before, so it weighs more.
_WEIGHTS = {
    Ending.GRANTED: 1.0,
    Ending.REFUSED: -0.1,
    Ending.LAPSED: -0.5,
    Ending.STUCK: -0.5,
    Ending.PREEMPTED: -1.5,
}
# Seconds in which a result loses half its weight: capacity comes and goes within hours.
_HALF_LIFE = 6 * 3600.0
# Grants that were worth nothing.
_FAILED_LANDINGS = frozenset({Ending.STUCK, Ending.PREEMPTED})


def summarize_results(entries: tuple[HistoryEntry, ...], *, now: float, window: float) -> Luck:
    """Summarize the results of one place and type, oldest first.

    A request that we released ourselves is counted, but says nothing about the place, so it is never the last result.
    """
    recent = [e for e in entries if now - e.at <= window]
    results = [e for e in entries if e.outcome is not Ending.RELEASED]
    waits = [e.waited for e in recent if e.outcome is Ending.GRANTED]
    last = results[-1] if results else None
    return Luck(
        last=None if last is None else last.outcome,
        last_kind="" if last is None else last.kind,
        last_age=None if last is None else max(now - last.at, 0.0),
        counts=dict(sorted(Counter(e.outcome for e in recent).items())),
        median_wait=median(waits) if waits else None,
    )


def longest_recent_wait(deployment: Deployment, history: Iterable[HistoryEntry], now: float) -> float:
    """Return the longest wait for a grant of this type, in seconds, or 0 without one.

    Only grants of the last week count, in places where this deployment may request a slice.
    """
    places = {c.place for c in deployment.candidates}
    grants = (e for e in history if e.outcome is Ending.GRANTED and now - e.at <= _WEEK)
    usable = (e for e in grants if e.type == deployment.accelerator.name and e.place in places)
    return max((e.waited for e in usable), default=0.0)


def capacity_score(entries: Iterable[HistoryEntry], now: float) -> float:
    """Return the sum of the results, recent ones first: a grant counts for a place, a refusal or a loss against it."""
    return math.fsum(_WEIGHTS.get(e.outcome, 0.0) * 0.5 ** (max(0.0, now - e.at) / _HALF_LIFE) for e in entries)


def capacity_scores(history: Iterable[HistoryEntry], kind: str, now: float) -> Mapping[Place, float]:
    """Return the score of each place where this type of slice was requested."""
    return {place: capacity_score(entries, now) for place, entries in _entries_by_place(history, kind).items()}


def failed_landings(history: Iterable[HistoryEntry], kind: str, now: float) -> tuple[RefusalRecord, ...]:
    """Return the last failed landing of each place that the history of this type weighs against, oldest request first.

    A grant that has not lasted yet does not count: it may be the next one that fails.
    """
    failures = []
    for entries in _entries_by_place(history, kind).values():
        failure = _last_failed_landing(entries)
        proven = (e for e in entries if e.outcome is not Ending.GRANTED or now - e.at >= LASTING)
        if failure is not None and capacity_score(proven, now) < 0:
            failures.append(failure)
    return tuple(failures)


def doubtful_places_of_history(history: Iterable[HistoryEntry], kind: str, now: float) -> frozenset[Place]:
    """Return the places that are doubtful to a run that begins now."""
    return frozenset(r.place for r in failed_landings(history, kind, now) if makes_doubtful(r, now))


def _entries_by_place(history: Iterable[HistoryEntry], kind: str) -> Mapping[Place, list[HistoryEntry]]:
    entries: dict[Place, list[HistoryEntry]] = {}
    for entry in history:
        if entry.type == kind:
            entries.setdefault(entry.place, []).append(entry)
    return entries


def _last_failed_landing(entries: Iterable[HistoryEntry]) -> RefusalRecord | None:
    """Return the last failed landing, with the count of failures in a row.

    A request that was sent before a failure and fails after it is no second one: Google takes back several slices of
    one place together.
    """
    last: RefusalRecord | None = None
    for entry in entries:
        if entry.outcome not in _FAILED_LANDINGS:
            continue
        times = 1
        if last is not None and makes_doubtful(last, entry.at):
            was_requested_after = entry.at - entry.waited >= last.at
            times = last.times + was_requested_after
        last = RefusalRecord(
            zone=entry.zone,
            provisioning=entry.provisioning,
            kind=entry.kind,
            scope=RefusalScope.PAIR,
            message=entry.text,
            at=entry.at,
            until=entry.at + hold_seconds(entry.kind, times),
            times=times,
            landed=True,
            backend=entry.backend,
        )
    return last


def preference(usd_per_chip_hour: float | None, score: float, *, is_listed: bool) -> tuple[float, float]:
    """Return what orders places of one provisioning model, smaller first: the price, and at the same price the score.

    `is_listed`: the profile names its zones, and its order holds. `apply` and `zones` use the same order.
    """
    if is_listed:
        return (0.0, 0.0)
    return (math.inf if usd_per_chip_hour is None else usd_per_chip_hour, -score)
