"""Whether to believe a cell. Each doubt is a row: what it is called, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.benchmark import CellStatus, Evidence, Figures
from tpudeploy.domain.load import Point
from tpudeploy.sizing.serve import Service, Verdict

# Above these a figure is in doubt.
_FAILED = 0.01  # of all requests
_CACHED = 0.05  # of prompt tokens; a few blocks are hit by chance, or by a probe beside us
_PEAK = 0.60  # of the arithmetic: published servers reach half, and padding costs more
_BANDWIDTH = 1.0
LAG = 0.020  # seconds, at p99: what is read then is late by as much
_STREAMS = 0.90  # below this share of the streams asked for, another concurrency was measured

Doubt = tuple[CellStatus, str]


def judge(point: Point, of: Figures, seen: Evidence, verdict: Verdict | None) -> tuple[CellStatus, tuple[str, ...]]:
    """The gravest status that applies, and the sentences of all."""
    order = tuple(CellStatus)
    doubts = sorted(_doubts(point, of, seen, verdict), key=lambda doubt: order.index(doubt[0]))
    status = doubts[0][0] if doubts else CellStatus.OK
    return status, tuple(why for _, why in doubts)


def _doubts(point: Point, of: Figures, seen: Evidence, verdict: Verdict | None) -> Iterator[Doubt]:
    asked = (of.requests or 0) + of.requests_failed
    if of.requests == 0:
        yield CellStatus.FAILED, f"not one of {asked} requests was answered after the warm-up"
    elif of.requests_failed > _FAILED * asked:
        yield CellStatus.FAILED, f"{of.requests_failed} of {asked} requests failed"
    if seen.cached_share is not None and seen.cached_share > _CACHED:
        yield CellStatus.CACHE_SUSPECT, f"{seen.cached_share:.0%} of the prompt tokens came from the prefix cache"
    yield from _impossible(seen)
    if seen.client_lag_p99_seconds is not None and seen.client_lag_p99_seconds > LAG:
        late = seen.client_lag_p99_seconds * 1000
        yield CellStatus.CLIENT_BOUND, f"the client was {late:.0f} ms late itself (p99)"
    yield from _too_few_streams(point.concurrency, seen)
    if verdict is not None and verdict.service is Service.QUEUES:
        yield CellStatus.OVERSUBSCRIBED, verdict.why


def _too_few_streams(streams: int | None, seen: Evidence) -> Iterator[Doubt]:
    if streams is None:
        return
    counted, computed = seen.streams_mean, seen.streams_by_latency
    if counted is not None and counted < _STREAMS * streams:
        yield CellStatus.CLIENT_BOUND, f"{counted:.1f} of {streams} streams were under way on average"
    if counted is None and computed is not None and computed < _STREAMS * streams:
        # The client may not be the reason: a run of few requests reads low by its beginning and its end alone.
        few = f"{computed:.1f} of {streams} streams were under way on average, by rate and latency"
        yield CellStatus.FEW_STREAMS, f"{few}: the run was short, or its client was the limit"


def _impossible(seen: Evidence) -> Iterator[Doubt]:
    if seen.peak_share is not None and seen.peak_share > _PEAK:
        much = f"these tokens need {seen.peak_share:.0%} of what the chips can compute, attention not counted"
        yield CellStatus.ROOFLINE_SUSPECT, much if seen.peak_share <= 1 else f"impossible: {much}"
    if seen.bandwidth_share is not None and seen.bandwidth_share > _BANDWIDTH:
        much = f"tokens come {seen.bandwidth_share:.1f} times as fast as the chips can read the weights for each"
        yield CellStatus.ROOFLINE_SUSPECT, f"impossible: {much}"
