"""Samples become figures: latencies of requests, rates of the window, and the load on the client.

Requests do not end where the window does. One that lies partly in it counts by that part, so that a rate is right
whether or not streams move in step, and however long a request is; counting only what ends within a window of fixed
length reads up to a third too low.

Why: decision 36 in docs/decisions.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import sqrt

from tpudeploy.features.benchmark.offer import Observation, RequestRecord
from tpudeploy.features.benchmark.run import Evidence, Figures, Slo, Spread

Window = tuple[float, float]


def figures(observation: Observation, slo: Slo) -> Figures:
    """Return the figures of an observation that reached its window."""
    assert observation.window is not None
    window = observation.window
    complete = [answer for answer in observation.answers if not answer.error]
    # The warm-up counts for no latency. Its last requests may reach no further than the window's beginning.
    measured = [answer for answer in complete if answer.turn > 0]
    rate = _per_second(((a.sent_at, a.ended_at, 1.0) for a in complete), window)
    # A prompt is processed until its first token comes.
    prompts = ((a.sent_at, a.arrivals[0], a.prompt_tokens or 0) for a in complete)
    return Figures(
        requests=len(measured),
        requests_failed=sum(1 for answer in observation.answers if answer.error),
        window_seconds=window[1] - window[0],
        requests_per_second=rate,
        goodput_requests_per_second=_goodput(measured, slo, rate),
        input_tokens_per_second=_per_second(prompts, window),
        output_tokens_per_second=_output_rate(complete, window),
        prompt_tokens_mean=_mean([answer.prompt_tokens for answer in measured]),
        output_tokens_mean=_mean([answer.output_tokens for answer in measured]),
        ttft_seconds=spread([_ttft(answer) for answer in measured]),
        itl_seconds=spread(_gaps(measured)),
        tpot_seconds=spread(_times_per_token(measured)),
        e2e_seconds=spread([answer.ended_at - answer.sent_at for answer in measured]),
    )


def of_client(observation: Observation) -> Evidence:
    """Return what the client observed about itself."""
    assert observation.window is not None
    window = observation.window
    in_flight = sum(_overlap(answer.sent_at, answer.ended_at, window) for answer in observation.answers)
    return Evidence(
        client_lag_p99_seconds=quantile(observation.lags, 0.99) if observation.lags else None,
        client_cpu_share=observation.cpu_share,
        streams_mean=_over(in_flight, window),
    )


def errors(answers: Iterable[RequestRecord]) -> Mapping[str, int]:
    """Return the number of each error, the most frequent first."""
    return dict(Counter(answer.error for answer in answers if answer.error).most_common())


def spread(samples: Sequence[float]) -> Spread | None:
    if not samples:
        return None
    ordered, count = sorted(samples), len(samples)
    mean = sum(ordered) / count
    squares = sum((sample - mean) ** 2 for sample in ordered)
    p50, p90, p95, p99 = (_quantile_of_sorted(ordered, share) for share in (0.50, 0.90, 0.95, 0.99))
    deviation = sqrt(squares / (count - 1)) if count > 1 else None
    return Spread(count=count, mean=mean, deviation=deviation, p50=p50, p90=p90, p95=p95, p99=p99, most=ordered[-1])


def quantile(samples: Sequence[float], share: float) -> float:
    """Return a quantile, linear between the two nearest samples (type 7 of Hyndman and Fan).

    Raise ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    return _quantile_of_sorted(sorted(samples), share)


def _quantile_of_sorted(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _goodput(measured: Sequence[RequestRecord], slo: Slo, rate: float) -> float | None:
    """Return the rate of the requests that met the objective, or None without an objective or without requests."""
    if slo == Slo() or not measured:
        return None
    return rate * (sum(_meets(answer, slo) for answer in measured) / len(measured))  # if all met it, exactly the rate


def _meets(answer: RequestRecord, slo: Slo) -> bool:
    if slo.ttft_seconds is not None and _ttft(answer) > slo.ttft_seconds:
        return False
    tpot = _tpot(answer)
    return slo.tpot_seconds is None or tpot is None or tpot <= slo.tpot_seconds


def _gaps(answers: Iterable[RequestRecord]) -> list[float]:
    """Return the times between the pieces of each answer."""
    return [late - early for answer in answers for early, late in pairwise(answer.arrivals)]


def _times_per_token(answers: Iterable[RequestRecord]) -> list[float]:
    """Return the time per token of each answer that has more than one."""
    return [time for time in map(_tpot, answers) if time is not None]


def _ttft(answer: RequestRecord) -> float:
    return answer.arrivals[0] - answer.sent_at


def _tpot(answer: RequestRecord) -> float | None:
    """Return the time per token, not per piece, or None for a single token."""
    tokens = answer.output_tokens or 0
    return (answer.arrivals[-1] - answer.arrivals[0]) / (tokens - 1) if tokens > 1 else None


def _per_second(spans: Iterable[tuple[float, float, float]], window: Window) -> float:
    """Return the rate of spans (begin, end, weight), each counted by the part of it that lies in the window."""
    inside = sum(weight * _overlap(begin, end, window) / (end - begin) for begin, end, weight in spans if end > begin)
    return _over(inside, window)


def _output_rate(answers: Iterable[RequestRecord], window: Window) -> float:
    """Return output tokens per second. Each piece counts as the mean number of tokens per piece of its answer."""
    begin, end = window
    tokens = 0.0
    for answer in answers:
        inside = sum(begin <= at < end for at in answer.arrivals)
        tokens += inside * (answer.output_tokens or 0) / len(answer.arrivals)
    return _over(tokens, window)


def _overlap(begin: float, end: float, window: Window) -> float:
    return max(0.0, min(end, window[1]) - max(begin, window[0]))


def _over(amount: float, window: Window) -> float:
    """Return an amount per second of the window."""
    begin, end = window
    return amount / (end - begin) if end > begin else 0.0


def _mean(counts: Sequence[int | None]) -> float | None:
    reported = [count for count in counts if count is not None]
    return sum(reported) / len(reported) if reported else None
