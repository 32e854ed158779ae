"""The figures in a running engine's /metrics, and the meaning of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json


@frozen
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


@frozen
class Spent:
    """The time that `requests` which ended spent in one phase, all together."""

    seconds: float
    requests: float

    @property
    def mean(self) -> float | None:
        return self.seconds / self.requests if self.requests else None


@frozen
class Figures:
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


def combined(all_figures: Sequence[Figures]) -> Figures:
    """Return the figures of several servers together.

    Counts, times and histograms are added. `kv_cache_used` is that of the fullest server, because a request waits for
    the cache of the server that it was sent to. A sum that one server lacks is unknown.
    """

    def total(values: Iterable[float | None]) -> float | None:
        numbers = [value for value in values if value is not None]
        return sum(numbers) if len(numbers) == len(all_figures) else None

    def spent(phases: Sequence[Spent | None]) -> Spent | None:
        times = [phase for phase in phases if phase is not None]
        if len(times) < len(all_figures):
            return None
        return Spent(seconds=sum(time.seconds for time in times), requests=sum(time.requests for time in times))

    fullest = [each.kv_cache_used for each in all_figures if each.kv_cache_used is not None]
    awake = [each.is_awake for each in all_figures if each.is_awake is not None]
    return Figures(
        running=total(each.running for each in all_figures),
        waiting=_added(each.waiting for each in all_figures),
        kv_cache_used=max(fullest, default=None),
        preemptions=total(each.preemptions for each in all_figures),
        rejected=total(each.rejected for each in all_figures),
        finished=_added(each.finished for each in all_figures),
        prompt_tokens=total(each.prompt_tokens for each in all_figures),
        generation_tokens=total(each.generation_tokens for each in all_figures),
        prefix_queried_tokens=total(each.prefix_queried_tokens for each in all_figures),
        prefix_hit_tokens=total(each.prefix_hit_tokens for each in all_figures),
        first_token=_added_histograms([each.first_token for each in all_figures]),
        between_tokens=_added_histograms([each.between_tokens for each in all_figures]),
        queued=spent([each.queued for each in all_figures]),
        prefilling=spent([each.prefilling for each in all_figures]),
        decoding=spent([each.decoding for each in all_figures]),
        process_bytes=total(each.process_bytes for each in all_figures),
        is_awake=all(awake) if awake else None,
        since="since each server started",
    )


def _added(counts: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    sums: dict[str, float] = {}
    for reasons in counts:
        for reason, count in reasons.items():
            sums[reason] = sums.get(reason, 0.0) + count
    return sums


def _added_histograms(histograms: Sequence[Histogram | None]) -> Histogram | None:
    """Return the sum of histograms with the same bounds, or None where one is missing or has others."""
    parts = [histogram for histogram in histograms if histogram is not None]
    if len(parts) < len(histograms) or len({part.bounds for part in parts}) != 1:
        return None
    counts = tuple(map(sum, zip(*(part.counts for part in parts), strict=True)))
    return Histogram(bounds=parts[0].bounds, counts=counts, sum=sum(part.sum for part in parts))


class Grade(StrEnum):
    """`PLAIN`: a figure that is neither good nor bad by itself. `COARSE`: a figure too coarse for comparisons."""

    OK = "ok"
    WARN = "warn"
    PLAIN = "plain"
    COARSE = "coarse"


@frozen
class Reading:
    """One figure. `shown` is its text, `says` is its meaning, `hint` is the remedy."""

    name: str
    unit: str
    value: float | Mapping[str, float] | None
    shown: str
    grade: Grade
    says: str = ""
    hint: str = ""


@frozen
class Metered:
    """One replica, or the server at a published endpoint. `silent` says why there are no readings."""

    address: str
    url: str
    readings: tuple[Reading, ...] = ()
    silent: str = ""


@frozen
class Metrics:
    """The figures of each replica, and of each deployment that has several: `totals`."""

    replicas: tuple[Metered, ...]
    totals: tuple[Metered, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the document of `tpudeploy metrics --json` without its format."""
        document: dict[str, object] = to_json(self)
        return document
