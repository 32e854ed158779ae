"""The cells of a sweep: in which order to measure them, whether the engine can serve them, whether to trust them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.roofline import Roofline
from tpudeploy.features.benchmark.run import Cell, CellStatus, Evidence, Figures, Spread
from tpudeploy.sizing.serve import ServingAnswer, ServingCapacity, can_serve

# Beyond these a figure is doubtful.
_FAILED = 0.01  # of all requests
_CACHED = 0.05  # of prompt tokens; a few blocks are hit by chance, or by another client's probe
_PEAK = 0.60  # of the arithmetic: published servers reach half, and padding costs more
_BANDWIDTH = 1.0
# The lag of the client's reads at p99, by which a latency is too long: as a share of the median time to the first
# token, and in seconds the most for a slow server and the least that its timers can show (tests/bench/load.py).
_LAG_SHARE, _MOST_LAG, _LEAST_LAG = 0.02, 0.020, 0.005
_STREAMS = 0.90  # below this share of the requested streams, another concurrency was measured
_APART = 1.5  # times: two figures of one file that mean the same rate
_LONGEST = 1e8  # tokens; ten times the longest context of a released model
Doubt = tuple[CellStatus, str]


def grid(concurrencies: Iterable[int], contexts: Iterable[int], outputs: Iterable[int]) -> tuple[Point, ...]:
    """Return all cells, one shape of request after the other, each from the fewest streams up.

    The cells that break something come last.
    """
    shapes = [(context, output) for output in outputs for context in contexts]
    streams = tuple(concurrencies)
    return tuple(
        Point(concurrency=concurrency, context_tokens=context, output_tokens=output)
        for context, output in shapes
        for concurrency in streams
    )


def feasible(
    point: Point, budget: HbmBudget | Unsized | None, engine: Mapping[str, str], *, replicas: int = 1
) -> ServingCapacity | None:
    """Return whether the engine can serve a cell, or None if that is unknown.

    The engine's report about itself (`engine`) replaces what was computed from the profile. Of several `replicas`, each
    is taken to get an equal share of the streams.
    """
    streams, _, _ = point.sizes
    share = replace(point, concurrency=-(-streams // replicas))
    verdict = _feasible_at_one(share, budget, engine)
    if verdict is None or replicas == 1:
        return verdict
    at_once = min(streams, replicas * verdict.at_once)
    return replace(verdict, at_once=at_once, why=f"on each of {replicas} replicas, {verdict.why}")


def _feasible_at_one(
    point: Point, budget: HbmBudget | Unsized | None, engine: Mapping[str, str]
) -> ServingCapacity | None:
    if not isinstance(budget, HbmBudget):
        return _feasible_by_report(point, engine)
    length, blocks = _reported(engine, "max_model_len"), _reported(engine, "num_blocks")
    if length is not None:
        budget = replace(budget, engine=replace(budget.engine, max_model_len=length))
    if blocks is not None and _reported(engine, "block_size") == budget.block_size:
        budget = replace(budget, num_blocks=blocks)
    users, context, output = point.sizes
    return can_serve(budget, users=users, context=context, output=output)


def _feasible_by_report(point: Point, engine: Mapping[str, str]) -> ServingCapacity | None:
    """Compare with the length and the cache that the engine reports. It does not report its maximum of requests."""
    length, cache = _reported(engine, "max_model_len"), _reported(engine, "kv_cache_tokens")
    streams, context, output = point.sizes
    tokens = context + output
    if length is not None and tokens > length:
        why = f"{context} + {output} tokens exceed max_model_len {length}"
        return ServingCapacity(service=ServingAnswer.REFUSED, at_once=0, why=why)
    if cache is None:
        return None
    block = _reported(engine, "block_size") or 1
    room = cache // (-(-tokens // block) * block)
    if streams <= room:
        return ServingCapacity(service=ServingAnswer.FITS, at_once=streams, why=f"{room} such requests run at once")
    why = f"{room} of {streams} run at once, for want of KV cache; the rest queue"
    return ServingCapacity(service=ServingAnswer.QUEUES, at_once=room, why=why)


def _reported(engine: Mapping[str, str], name: str) -> int | None:
    value = engine.get(name, "")
    return int(value) if value.isdecimal() else None


def judge_cell(
    cell: Cell,
    roofline: Roofline | None,
    verdict: ServingCapacity | None = None,
    *,
    doubts: Iterable[Doubt] = (),
) -> Cell:
    """Return a measured cell with its status and the reasons for it, `doubts` among them.

    The gravest doubt decides the status. The roofline adds the shares of what the chips can do to the evidence.
    """
    figures, evidence = cell.figures, cell.evidence or Evidence()
    assert figures is not None
    if roofline is not None:
        peak, bandwidth = roofline.peak_share(figures), roofline.bandwidth_share(figures)
        evidence = replace(evidence, peak_share=peak, bandwidth_share=bandwidth)
    order = tuple(CellStatus)
    found = [*doubts, *_doubts(cell.point, figures, evidence, verdict)]
    found.sort(key=lambda doubt: order.index(doubt[0]))
    return replace(
        cell,
        status=found[0][0] if found else CellStatus.OK,
        reasons=tuple(reason for _, reason in found),
        evidence=evidence,
    )


def contradictions(point: Point, figures: Figures, evidence: Evidence) -> Iterator[Doubt]:
    """Yield where the figures of another client's file cannot all be true.

    Clients differ in what they leave out of a rate, such as a warm-up, so rates may differ by `_APART`.
    """
    for sentence in (
        *_unequal_rates(figures),
        *_impossible_latencies(figures),
        *_impossible_lengths(figures),
        *_too_many_streams(point, figures, evidence),
    ):
        yield CellStatus.CONTRADICTORY, f"contradictory: {sentence}"


def _unequal_rates(figures: Figures) -> Iterator[str]:
    rate, requests, seconds = figures.requests_per_second, figures.requests, figures.window_seconds
    if rate is not None and requests is not None and seconds and _are_apart(rate, requests / seconds):
        yield f"{rate:.3g} requests/s, but {requests} requests in {seconds:.4g} s are {requests / seconds:.3g}"
        return  # what follows from that rate is no second contradiction
    answer, tokens = figures.output_tokens_mean, figures.output_tokens_per_second
    if rate is not None and answer is not None and tokens is not None and _are_apart(tokens, rate * answer):
        yield f"{tokens:.3g} output tok/s, but {rate:.3g} requests/s of {answer:.3g} tokens are {rate * answer:.3g}"
    goodput = figures.goodput_requests_per_second
    if goodput is not None and rate is not None and goodput > _APART * rate:
        yield f"{goodput:.3g} requests/s kept the SLO, of {rate:.3g}"


def _impossible_latencies(figures: Figures) -> Iterator[str]:
    spreads = {
        "TTFT": figures.ttft_seconds,
        "ITL": figures.itl_seconds,
        "TPOT": figures.tpot_seconds,
        "latency": figures.e2e_seconds,
    }
    for name, spread in spreads.items():
        if spread is None:
            continue
        rising = [each for each in (spread.p50, spread.p90, spread.p95, spread.p99, spread.most) if each is not None]
        if min((spread.mean, *rising)) < 0:
            yield f"a negative {name}"
        elif any(later < earlier for earlier, later in pairwise(rising)):
            yield f"the quantiles of the {name} do not rise"
    first, whole = figures.ttft_seconds, figures.e2e_seconds
    if first is not None and whole is not None and first.mean > whole.mean:
        yield f"a first token after {first.mean:.3g} s, but the whole answer after {whole.mean:.3g} s"


def _impossible_lengths(figures: Figures) -> Iterator[str]:
    for name, length in (("prompts", figures.prompt_tokens_mean), ("answers", figures.output_tokens_mean)):
        if length is not None and not 0 <= length <= _LONGEST:
            yield f"{name} of {length:.3g} tokens"


def _too_many_streams(point: Point, figures: Figures, evidence: Evidence) -> Iterator[str]:
    ran = evidence.streams_by_latency if evidence.streams_mean is None else evidence.streams_mean
    rate, whole = figures.requests_per_second, figures.e2e_seconds
    if ran is None and rate is not None and whole is not None:
        ran = rate * whole.mean
    if ran is not None and point.concurrency is not None and ran > _APART * max(1, point.concurrency):
        yield f"{ran:.3g} requests ran at once by rate and latency, of at most {point.concurrency}"


def _are_apart(one: float, other: float) -> bool:
    return max(one, other) > _APART * min(one, other)


def _doubts(point: Point, figures: Figures, evidence: Evidence, verdict: ServingCapacity | None) -> Iterator[Doubt]:
    failed = figures.requests_failed or 0  # without a count, no doubt follows from it
    total = (figures.requests or 0) + failed
    if figures.requests == 0:
        yield CellStatus.FAILED, f"not one of {total} requests was answered after the warm-up"
    elif failed > _FAILED * total:
        yield CellStatus.FAILED, f"{failed} of {total} requests failed"
    if evidence.cached_share is not None and evidence.cached_share > _CACHED:
        yield CellStatus.CACHE_SUSPECT, f"{evidence.cached_share:.0%} of the prompt tokens came from the prefix cache"
    yield from _impossible(evidence)
    lag = evidence.client_lag_p99_seconds
    if lag is not None and lag > most_lag(figures.ttft_seconds):
        yield CellStatus.CLIENT_BOUND, f"the client was {lag * 1000:.0f} ms late itself (p99)"
    yield from _too_few_streams(point.concurrency, evidence)
    if verdict is not None and verdict.service is ServingAnswer.QUEUES:
        yield CellStatus.OVERSUBSCRIBED, verdict.why


def most_lag(ttft_seconds: Spread | None) -> float:
    """Return the lag at p99, in seconds, up to which the time to the first token is within 2 % of the server's own."""
    if ttft_seconds is None or ttft_seconds.p50 is None:
        return _MOST_LAG
    return min(_MOST_LAG, max(_LEAST_LAG, _LAG_SHARE * ttft_seconds.p50))


def _too_few_streams(streams: int | None, evidence: Evidence) -> Iterator[Doubt]:
    if streams is None:
        return
    counted, computed = evidence.streams_mean, evidence.streams_by_latency
    if counted is not None and counted < _STREAMS * streams:
        yield CellStatus.CLIENT_BOUND, f"{counted:.1f} of {streams} streams were under way on average"
    if counted is None and computed is not None and computed < _STREAMS * streams:
        # The client may not be the reason: a run of few requests reads low by its beginning and its end alone.
        share = f"{computed:.1f} of {streams} streams were under way on average, by rate and latency"
        yield CellStatus.FEW_STREAMS, f"{share}: the run was short, or its client was the limit"


def _impossible(evidence: Evidence) -> Iterator[Doubt]:
    peak, bandwidth = evidence.peak_share, evidence.bandwidth_share
    if peak is not None and peak > _PEAK:
        reason = f"these tokens need {peak:.0%} of what the chips can compute, attention not counted"
        yield CellStatus.ROOFLINE_SUSPECT, reason if peak <= 1 else f"impossible: {reason}"
    if bandwidth is not None and bandwidth > _BANDWIDTH:
        reason = f"tokens come {bandwidth:.1f} times as fast as the chips can read the weights for each"
        yield CellStatus.ROOFLINE_SUSPECT, f"impossible: {reason}"
