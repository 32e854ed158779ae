"""The figures in a running engine's /metrics, and the meaning of each."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce

from tpudeploy.domain.serialization import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Cumulative counts per bound: `counts` grow with `bounds`, whose last is infinite. `sum` is in seconds."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float

    @property
    def count(self) -> float:
        return self.counts[-1] if self.counts else 0.0

    def within(self, share: float) -> float | None:
        """Return the smallest bound that covers this share of the samples, or None without samples."""
        if not self.count:
            return None
        return next(bound for bound, count in zip(self.bounds, self.counts, strict=True) if count >= share * self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The time that `requests` which ended spent in one phase, all together."""

    seconds: float
    requests: float

    @property
    def mean(self) -> float | None:
        return self.seconds / self.requests if self.requests else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """The sums over all engines behind one endpoint; `kv_cache_used` (0 to 1) is that of the fullest. None: unknown.

    `running` and `waiting` requests are current. All other figures count from `since`. `queued`, `prefilling` and
    `decoding` say where finished requests spent their time.
    """

    running: float | None = None
    waiting: Mapping[str, float] = field(default_factory=dict)
    kv_cache_used: float | None = None
    preemptions: float | None = None
    rejected: float | None = None
    finished: Mapping[str, float] = field(default_factory=dict)
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queried_tokens: float | None = None
    prefix_hit_tokens: float | None = None
    first_token: Histogram | None = None
    between_tokens: Histogram | None = None
    queued: Spent | None = None
    prefilling: Spent | None = None
    decoding: Spent | None = None
    process_bytes: float | None = None
    is_awake: bool | None = None
    since: str = "since the server started"


def combined(all_figures: Sequence[EngineFigures]) -> EngineFigures:
    """Return the figures of several servers together; there is at least one.

    Counts, times and histograms are added. `kv_cache_used` is that of the fullest server, because a request waits for
    the cache of the server that it was sent to. A sum that one server lacks is unknown.
    """
    return replace(reduce(_combine_two, all_figures), since="since each server started")


def _combine_two(one: EngineFigures, other: EngineFigures) -> EngineFigures:
    return EngineFigures(
        running=_sum(one.running, other.running),
        waiting=_sum_by_reason(one.waiting, other.waiting),
        kv_cache_used=_fullest(one.kv_cache_used, other.kv_cache_used),
        preemptions=_sum(one.preemptions, other.preemptions),
        rejected=_sum(one.rejected, other.rejected),
        finished=_sum_by_reason(one.finished, other.finished),
        prompt_tokens=_sum(one.prompt_tokens, other.prompt_tokens),
        generation_tokens=_sum(one.generation_tokens, other.generation_tokens),
        prefix_queried_tokens=_sum(one.prefix_queried_tokens, other.prefix_queried_tokens),
        prefix_hit_tokens=_sum(one.prefix_hit_tokens, other.prefix_hit_tokens),
        first_token=_sum_of_histograms(one.first_token, other.first_token),
        between_tokens=_sum_of_histograms(one.between_tokens, other.between_tokens),
        queued=_sum_of_times(one.queued, other.queued),
        prefilling=_sum_of_times(one.prefilling, other.prefilling),
        decoding=_sum_of_times(one.decoding, other.decoding),
        process_bytes=_sum(one.process_bytes, other.process_bytes),
        is_awake=_all_awake(one.is_awake, other.is_awake),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _sum_by_reason(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    return {reason: one.get(reason, 0.0) + other.get(reason, 0.0) for reason in {**one, **other}}


def _sum_of_times(one: Spent | None, other: Spent | None) -> Spent | None:
    if one is None or other is None:
        return None
    return Spent(seconds=one.seconds + other.seconds, requests=one.requests + other.requests)


def _sum_of_histograms(one: Histogram | None, other: Histogram | None) -> Histogram | None:
    """Return the sum of two histograms with the same bounds, or None where one is missing or has others."""
    if one is None or other is None or one.bounds != other.bounds:
        return None
    counts = tuple(map(operator.add, one.counts, other.counts))
    return Histogram(bounds=one.bounds, counts=counts, sum=one.sum + other.sum)


def _fullest(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def _all_awake(one: bool | None, other: bool | None) -> bool | None:
    """Return whether both are awake, as far as they say so."""
    if one is None or other is None:
        return one if other is None else other
    return one and other


class Grade(StrEnum):
    """`PLAIN`: a figure that is neither good nor bad by itself. `COARSE`: a figure too coarse for comparisons."""

    OK = "ok"
    WARN = "warn"
    PLAIN = "plain"
    COARSE = "coarse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One figure. `shown` is its text, `says` is its meaning, `hint` is the remedy."""

    name: str
    unit: str
    value: float | Mapping[str, float] | None
    shown: str
    grade: Grade
    says: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """One replica, or the server at a published endpoint. `silent` says why there are no readings.

    `observed` is False where its metrics could not be read.
    """

    address: str
    url: str
    readings: tuple[Reading, ...] = ()
    silent: str = ""
    observed: bool = True
    ADDED_LATER = frozenset({"observed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures of each replica, and of each deployment that has several: `totals`."""

    replicas: tuple[Metered, ...]
    totals: tuple[Metered, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the document of `tpudeploy metrics --json` without its format."""
        document: dict[str, object] = to_json(self)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The counts of a server since it started: tokens that were looked up in its prefix cache, and that were in it.

    `answers` are the requests that it completed. None: it does not report that.
    """

    looked_up_tokens: float | None = None
    cached_tokens: float | None = None
    answers: float | None = None
