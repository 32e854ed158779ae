"""The load of a deployment over the last day: a row for each reading of its servers, and series of rows for charts.

A server counts since it started, so a row has what was added since the reading before it. Latencies are counts by the
buckets of the server's histograms: those of several rows add up, and their percentiles are bounds of buckets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf, isfinite
from typing import Any

from tpudeploy.domain.metrics import EngineFigures, Histogram

DAY, HOUR = 86_400.0, 3600.0
# The seconds that each chart shows, and those that one of its points stands for.
SPANS: Mapping[str, tuple[float, float]] = {"hour": (HOUR, 60.0), "day": (DAY, 600.0)}
_SHARES = {"p50": 0.5, "p95": 0.95}
_MILLISECONDS = 1000.0
Buckets = Mapping[float, float]  # how many samples were within a bound, and above the bound before it


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRow:
    """What one reading found at the time `at`, of all servers together. None: unknown.

    `running` and `waiting` are requests at that time, `kv_cache` the share of the fullest server. `finished` requests,
    and the latencies by bucket, are those of the `seconds` before.
    """

    at: float
    running: float | None = None
    waiting: float | None = None
    kv_cache: float | None = None
    seconds: float = 0.0
    finished: float = 0.0
    first: Buckets = field(default_factory=dict)
    between: Buckets = field(default_factory=dict)

    def to_line(self) -> str:
        """Return the row as a line of JSON."""
        values = {"at": round(self.at, 1), "running": self.running, "waiting": self.waiting, "kv": self.kv_cache}
        changes = {"seconds": round(self.seconds, 1), "finished": self.finished} if self.seconds else {}
        buckets = {
            name: [[bound if isfinite(bound) else None, n] for bound, n in each.items()]
            for name, each in (("first", self.first), ("between", self.between))
            if each
        }
        return json.dumps({**values, **changes, **buckets}, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: bytes) -> LoadRow | None:
        """Return the row of a line, or None for a torn line and for any other text."""
        try:
            tree = json.loads(line)
            return cls(
                at=float(tree["at"]),
                running=_number(tree["running"]),
                waiting=_number(tree["waiting"]),
                kv_cache=_number(tree["kv"]),
                seconds=float(tree.get("seconds", 0.0)),
                finished=float(tree.get("finished", 0.0)),
                first=_buckets(tree.get("first", ())),
                between=_buckets(tree.get("between", ())),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _buckets(rows: Any) -> Buckets:
    return {inf if bound is None else float(bound): float(n) for bound, n in rows}


def new_row(at: float, since: float | None, pairs: Sequence[tuple[EngineFigures | None, EngineFigures]]) -> LoadRow:
    """Return the row of the servers that answered at `at`: the figures of each at `since` (None: unknown), and now."""
    now = [figures for _, figures in pairs]
    changes = [(before, figures) for before, figures in pairs if before is not None]
    return LoadRow(
        at=at,
        running=_sum(figures.running for figures in now),
        waiting=_sum(sum(figures.waiting.values()) if figures.waiting else None for figures in now),
        kv_cache=max((f.kv_cache_used for f in now if f.kv_cache_used is not None), default=None),
        seconds=at - since if changes and since is not None else 0.0,
        finished=sum(_increase(sum(one.finished.values()), sum(other.finished.values())) for one, other in changes),
        first=_sum_of_buckets(_new_samples(one.first_token, other.first_token) for one, other in changes),
        between=_sum_of_buckets(_new_samples(one.between_tokens, other.between_tokens) for one, other in changes),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def _increase(before: float, now: float) -> float:
    """Return what a counter added; a server that started again counts from zero."""
    return now - before if now >= before else now


def _new_samples(before: Histogram | None, now: Histogram | None) -> Buckets:
    if now is None:
        return {}
    old = dict(zip(before.bounds, before.counts, strict=True)) if before and before.count <= now.count else {}
    samples: dict[float, float] = {}
    below = 0.0
    for bound, count in zip(now.bounds, now.counts, strict=True):
        increase = count - old.get(bound, 0.0)
        if increase > below:
            samples[bound] = increase - below
            below = increase
    return samples


def _sum_of_buckets(every: Iterable[Buckets]) -> Buckets:
    total: dict[float, float] = {}
    for buckets in every:
        for bound, n in buckets.items():
            total[bound] = total.get(bound, 0.0) + n
    return total


def percentile(buckets: Buckets, share: float) -> float | None:
    """Return the bound of the bucket that this share of the samples is within; None without samples or a bound."""
    rank, count = share * sum(buckets.values()), 0.0
    for bound in sorted(buckets):
        count += buckets[bound]
        if count >= rank:
            return bound if isfinite(bound) else None
    return None


def series(rows: Iterable[LoadRow], now: float, span: float, step: float) -> dict[str, list[float | None]]:
    """Return the columns of the last `span` seconds, one row for each `step` of them: None where nothing was read."""
    first = floor((now - span) / step)
    slots: dict[int, list[LoadRow]] = {slot: [] for slot in range(first, floor(now / step) + 1)}
    for row in rows:
        slots.get(floor(row.at / step), []).append(row)
    columns: dict[str, list[float | None]] = {}
    for slot, own in slots.items():
        for name, value in {"at": slot * step, **_point(own)}.items():
            columns.setdefault(name, []).append(value)
    return columns


def _point(rows: Sequence[LoadRow]) -> dict[str, float | None]:
    seconds = sum(row.seconds for row in rows)
    values: dict[str, float | None] = {
        "running": _mean(row.running for row in rows),
        "waiting": _mean(row.waiting for row in rows),
        "kv": _percent(_mean(row.kv_cache for row in rows)),
        "rate": round(sum(row.finished for row in rows) / seconds, 3) if seconds else None,
    }
    for name, buckets in (
        ("ttft", _sum_of_buckets(r.first for r in rows)),
        ("tpot", _sum_of_buckets(r.between for r in rows)),
    ):
        for title, share in _SHARES.items():
            bound = percentile(buckets, share)
            values[f"{name}_{title}"] = None if bound is None else round(bound * _MILLISECONDS, 3)
    return values


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return round(sum(numbers) / len(numbers), 3) if numbers else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 1)
