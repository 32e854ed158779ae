"""The figures of a running engine in words: each with its threshold, and the remedy beyond it.

A server's histogram shows the bucket of a latency, not a quantile, so it is printed as that and has no threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tpudeploy.domain.metrics import EngineFigures, Grade, Histogram, Reading
from tpudeploy.metrics.advice import KV_CACHE_FULL, Budget, cache_advice, preemption_advice, waiting_advice

_COARSE = "server-side histogram, coarse"
_LONG_QUEUE = 1.0  # seconds: a shorter wait is only for the next step


def readings(figures: EngineFigures, budget: Budget = None) -> tuple[Reading, ...]:
    """Return what happens now, what went wrong, what was done, how fast, and how much memory it takes.

    `budget` is that of the served profile, with which remedies are computed.
    """
    return tuple(reading for judge in _JUDGES for reading in judge(figures, budget))


def _sleep(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    if figures.is_awake is False:
        says, hint = "the engine sleeps, and does not answer", "Wake it up: POST /wake_up, or restart the server."
        yield _reading("engine", "", None, "asleep", grade=Grade.WARN, says=says, hint=hint)


def _running(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    if figures.running is not None:
        says = "" if figures.running else "idle"
        yield _reading("requests_running", "requests", figures.running, _count(figures.running), says=says)


def _waiting(figures: EngineFigures, budget: Budget) -> Iterator[Reading]:
    if not figures.waiting:
        return
    total = sum(figures.waiting.values())
    grade, says, hint = Grade.OK, "no requests waiting", ""
    if figures.waiting.get("capacity", 0) > 0 or (total and not figures.waiting.keys() - {""}):
        grade, says = Grade.WARN, "it gets more requests than it has room for"
        hint = waiting_advice(figures, budget)
    elif total:
        grade, says = Grade.WARN, "deferred for another reason than room: a LoRA budget, a KV transfer"
    text = _by_reason(figures.waiting)
    yield _reading("requests_waiting", "requests", dict(figures.waiting), text, grade=grade, says=says, hint=hint)


def _kv_cache(figures: EngineFigures, budget: Budget) -> Iterator[Reading]:
    used = figures.kv_cache_used
    if used is None:
        return
    grade, says, hint = Grade.OK, f"below {KV_CACHE_FULL:.0%}", ""
    if used > KV_CACHE_FULL:
        suffers = sum(figures.waiting.values()) > 0 or bool(figures.preemptions)
        says = f"over {KV_CACHE_FULL:.0%}: {'requests wait or were preempted for it' if suffers else 'nearly full'}"
        grade, hint = Grade.WARN, cache_advice(budget)
    yield _reading("kv_cache_used", "share", used, f"{used:.1%}", grade=grade, says=says, hint=hint)


def _preemptions(figures: EngineFigures, budget: Budget) -> Iterator[Reading]:
    count = figures.preemptions
    if count is None:
        return
    grade, says, hint = Grade.OK, f"none {figures.since}", ""
    if count:
        says = f"removed from the KV cache {figures.since}, and computed again"
        grade, hint = Grade.WARN, preemption_advice(figures, budget)
    yield _reading("preemptions", "requests", count, _count(count), grade=grade, says=says, hint=hint)


def _rejected(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    if figures.rejected:
        says = "rejected because the queue was full"
        hint = "Raise the limits of the queue (max_num_queued_reqs, max_num_queued_tokens), or add a replica."
        text = _count(figures.rejected)
        yield _reading("requests_rejected", "requests", figures.rejected, text, grade=Grade.WARN, says=says, hint=hint)


def _finished(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    if not figures.finished:
        return
    failed = figures.finished.get("error", 0)
    grade, says, hint = Grade.PLAIN, "", ""
    if failed:
        grade, says = Grade.WARN, f"{_count(failed)} ended in an error"
        hint = "`tpudeploy logs PROFILE` shows the errors."
    text = _by_reason(figures.finished)
    yield _reading("requests_finished", "requests", dict(figures.finished), text, grade=grade, says=says, hint=hint)


def _tokens(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    for name, tokens in (("prompt_tokens", figures.prompt_tokens), ("generation_tokens", figures.generation_tokens)):
        if tokens is not None:
            yield _reading(name, "tokens", tokens, _count(tokens), says=figures.since)


def _prefix_cache(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    queried, hits = figures.prefix_queried_tokens, figures.prefix_hit_tokens
    if queried is None or hits is None:
        return
    if not queried:
        says = "nothing was looked up: no requests yet, or prefix caching is off"
        yield _reading("prefix_cache_hits", "share", None, "-", says=says)
        return
    share = hits / queried
    yield _reading("prefix_cache_hits", "share", share, f"{share:.1%}", says="of the prompt tokens looked up")


def _time(figures: EngineFigures, budget: Budget) -> Iterator[Reading]:
    """Yield where finished requests spent their time. A server whose requests mostly wait is slow on any chip."""
    phases = {"waiting": figures.queued, "prefilling": figures.prefilling, "decoding": figures.decoding}
    means = {name: spent.mean for name, spent in phases.items() if spent is not None and spent.mean is not None}
    if len(means) < len(phases):
        return
    text = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in means.items())
    values, waiting = {name: round(seconds, 4) for name, seconds in means.items()}, means["waiting"]
    grade, says, hint = Grade.PLAIN, "mean of all finished requests", ""
    if waiting > _LONG_QUEUE and waiting > means["prefilling"] + means["decoding"]:
        grade, hint = Grade.WARN, waiting_advice(figures, budget)
        says = f"{waiting / sum(means.values()):.0%} of the time of all finished requests was waiting"
    yield _reading("request_time", "seconds", values, text, grade=grade, says=says, hint=hint)


def _latencies(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    for name, histogram in (("ttft", figures.first_token), ("itl", figures.between_tokens)):
        if histogram is not None:
            buckets = _buckets(histogram)
            text = _bucket_text(histogram) if buckets else "-"
            yield _reading(name, "seconds", buckets, text, grade=Grade.COARSE, says=_COARSE)


def _memory(figures: EngineFigures, _: Budget) -> Iterator[Reading]:
    size = figures.process_bytes
    if size is not None:
        says = "of the API server's process on the machine; none of it is HBM"
        yield _reading("process_memory", "bytes", size, f"{size / 1024**3:.1f} GiB", says=says)


_JUDGES: tuple[Callable[[EngineFigures, Budget], Iterator[Reading]], ...] = (
    *(_sleep, _running, _waiting, _kv_cache, _preemptions, _rejected),
    *(_finished, _tokens, _prefix_cache, _time, _latencies, _memory),
)


def _reading(
    name: str,
    unit: str,
    value: float | Mapping[str, float] | None,
    text: str,
    *,
    grade: Grade = Grade.PLAIN,
    says: str = "",
    hint: str = "",
) -> Reading:
    return Reading(name=name, unit=unit, value=value, shown=text, grade=grade, says=says, hint=hint)


def _by_reason(counts: Mapping[str, float]) -> str:
    """Return the sum, and the counts above zero by reason."""
    reasons = ", ".join(f"{reason} {_count(count)}" for reason, count in counts.items() if reason and count)
    total = _count(sum(counts.values()))
    return f"{total} ({reasons})" if reasons else total


def _buckets(histogram: Histogram) -> Mapping[str, float] | None:
    """Return bounds in seconds; the last bucket has none, and is left out."""
    half, most = histogram.within(0.5), histogram.within(0.95)
    if half is None or most is None:
        return None
    bounds = {"half_within": half, "p95_within": most}
    return {"count": histogram.count, **{name: bound for name, bound in bounds.items() if bound != float("inf")}}


def _bucket_text(histogram: Histogram) -> str:
    half, most = _bound(histogram.within(0.5)), _bound(histogram.within(0.95))
    return f"p50 <= {half}, p95 <= {most} (n = {_count(histogram.count)})"


def _bound(seconds: float | None) -> str:
    return "an unknown time" if seconds in {None, float("inf")} else f"{seconds:g} s"


def _count(count: float) -> str:
    return f"{count:,.0f}"
