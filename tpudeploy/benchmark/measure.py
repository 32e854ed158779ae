"""Samples become figures: latencies of requests, rates of the window, and what they say of the client.

Requests do not end where the window does. One that lies partly in it counts by that part, so that a rate is right
whether or not streams move in step, and however long a request is; counting only what ends within a window of fixed
length reads up to a third too low.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import sqrt

from tpudeploy.benchmark.quantiles import of_sorted, quantile
from tpudeploy.domain.benchmark import Evidence, Figures, Slo, Spread
from tpudeploy.domain.load import Answer, Observation

Window = tuple[float, float]


def figures(seen: Observation, slo: Slo) -> Figures:
    """Of an observation that was not cut off before its window."""
    assert seen.window is not None
    window = seen.window
    whole = [answer for answer in seen.answers if not answer.error]
    # The warm-up counts for no latency. Its last requests may reach no further than the window's beginning.
    measured = [answer for answer in whole if answer.turn > 0]
    rate = _per_second(((a.sent_at, a.ended_at, 1.0) for a in whole), window)
    return Figures(
        requests=len(measured),
        requests_failed=sum(1 for answer in seen.answers if answer.error),
        window_seconds=window[1] - window[0],
        requests_per_second=rate,
        goodput_requests_per_second=_goodput(measured, slo, rate),
        # A prompt is worked on until its first token comes.
        input_tokens_per_second=_per_second(((a.sent_at, a.arrivals[0], a.prompt_tokens or 0) for a in whole), window),
        output_tokens_per_second=_arrived(whole, window),
        prompt_tokens_mean=_mean([a.prompt_tokens for a in measured if a.prompt_tokens is not None]),
        output_tokens_mean=_mean([a.output_tokens for a in measured if a.output_tokens is not None]),
        ttft_seconds=spread([_ttft(a) for a in measured]),
        itl_seconds=spread([late - early for a in measured for early, late in pairwise(a.arrivals)]),
        tpot_seconds=spread([tpot for a in measured if (tpot := _tpot(a)) is not None]),
        e2e_seconds=spread([a.ended_at - a.sent_at for a in measured]),
    )


def of_client(seen: Observation) -> Evidence:
    """What the client says of itself."""
    assert seen.window is not None
    return Evidence(
        client_lag_p99_seconds=quantile(seen.lags, 0.99) if seen.lags else None,
        client_cpu_share=seen.cpu_share,
        streams_mean=_under_way(seen.answers, seen.window),
    )


def errors(answers: Iterable[Answer]) -> Mapping[str, int]:
    """Each text with how often it came, the commonest first."""
    return dict(Counter(answer.error for answer in answers if answer.error).most_common())


def spread(samples: Sequence[float]) -> Spread | None:
    """None of no samples."""
    if not samples:
        return None
    ordered, count = sorted(samples), len(samples)
    mean = sum(ordered) / count
    square = sum((sample - mean) ** 2 for sample in ordered)
    return Spread(
        count=count,
        mean=mean,
        deviation=sqrt(square / (count - 1)) if count > 1 else None,
        p50=of_sorted(ordered, 0.50),
        p90=of_sorted(ordered, 0.90),
        p95=of_sorted(ordered, 0.95),
        p99=of_sorted(ordered, 0.99),
        most=ordered[-1],
    )


def _goodput(measured: Sequence[Answer], slo: Slo, rate: float) -> float | None:
    """None where no SLO was given, or nothing was measured."""
    if slo == Slo() or not measured:
        return None
    return rate * (sum(_keeps(answer, slo) for answer in measured) / len(measured))  # of all, the rate to the last bit


def _keeps(answer: Answer, slo: Slo) -> bool:
    tpot = _tpot(answer)
    is_soon = slo.ttft_seconds is None or _ttft(answer) <= slo.ttft_seconds
    return is_soon and (slo.tpot_seconds is None or tpot is None or tpot <= slo.tpot_seconds)


def _ttft(answer: Answer) -> float:
    return answer.arrivals[0] - answer.sent_at


def _tpot(answer: Answer) -> float | None:
    """By tokens, not by pieces; None for a single token."""
    tokens = answer.output_tokens or 0
    return (answer.arrivals[-1] - answer.arrivals[0]) / (tokens - 1) if tokens > 1 else None


def _per_second(spans: Iterable[tuple[float, float, float]], window: Window) -> float:
    """Spans with a weight each, by the part of them that lies in the window."""
    begin, end = window
    inside = sum(weight * _overlap(a, b, window) / (b - a) for a, b, weight in spans if b > a)
    return inside / (end - begin) if end > begin else 0.0


def _under_way(answers: Iterable[Answer], window: Window) -> float:
    begin, end = window
    held = sum(_overlap(answer.sent_at, answer.ended_at, window) for answer in answers)
    return held / (end - begin) if end > begin else 0.0


def _arrived(answers: Iterable[Answer], window: Window) -> float:
    """Output tokens per second. A piece counts as many tokens as its answer had for each."""
    begin, end = window
    if end <= begin:
        return 0.0
    tokens = 0.0
    for answer in answers:
        inside = sum(begin <= at < end for at in answer.arrivals)
        tokens += inside * (answer.output_tokens or 0) / len(answer.arrivals)
    return tokens / (end - begin)


def _overlap(begin: float, end: float, window: Window) -> float:
    return max(0.0, min(end, window[1]) - max(begin, window[0]))


def _mean(of: Sequence[int]) -> float | None:
    return sum(of) / len(of) if of else None
