"""Figures of a running engine in words: each beside its threshold, with what to do where it is beyond.

What a server's histogram tells of latencies is a bucket, not a quantile: it is shown as such and judged by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tpudeploy.domain.metrics import Figures, Grade, Histogram, Reading
from tpudeploy.metrics.load import KV_CACHE_FULL, Budget, cache_advice, preemption_advice, waiting_advice

_COARSE = "server-side histogram, coarse"
_QUEUES_LONG = 1.0  # seconds: below, waiting for a step is all it is


def readings(of: Figures, budget: Budget = None) -> tuple[Reading, ...]:
    """In the order of a look: what happens now, what went wrong, what was done, how fast, how much memory.

    `budget` is that of the profile which is served: what to do is computed with it.
    """
    return tuple(reading for judge in _JUDGES for reading in judge(of, budget))


def _asleep(of: Figures, _: Budget) -> Iterator[Reading]:
    if of.is_awake is False:
        says, hint = "the engine sleeps, and answers nobody", "Wake it up: POST /wake_up, or restart the server."
        yield Reading(name="engine", unit="", value=None, shown="asleep", grade=Grade.WARN, says=says, hint=hint)


def _running(of: Figures, _: Budget) -> Iterator[Reading]:
    if of.running is not None:
        says = "idle" if not of.running else ""
        yield _reading("requests_running", "requests", of.running, _count(of.running), says=says)


def _waiting(of: Figures, budget: Budget) -> Iterator[Reading]:
    if not of.waiting:
        return
    total = sum(of.waiting.values())
    reasons = ", ".join(f"{reason} {_count(n)}" for reason, n in of.waiting.items() if reason and n)
    shown = f"{_count(total)} ({reasons})" if reasons else _count(total)
    grade, says, hint = Grade.OK, "nobody waits", ""
    if of.waiting.get("capacity", 0) > 0 or (total and not of.waiting.keys() - {""}):
        grade, says = Grade.WARN, "more is asked of it than it has room for"
        hint = waiting_advice(of, budget)
    elif total:
        grade, says = Grade.WARN, "deferred for something else than room: a LoRA budget, a KV transfer"
    yield Reading(
        name="requests_waiting", unit="requests", value=dict(of.waiting), shown=shown, grade=grade, says=says, hint=hint
    )


def _kv_cache(of: Figures, budget: Budget) -> Iterator[Reading]:
    used = of.kv_cache_used
    if used is None:
        return
    grade, says, hint = Grade.OK, f"below {KV_CACHE_FULL:.0%}", ""
    if used > KV_CACHE_FULL:
        suffers = sum(of.waiting.values()) > 0 or bool(of.preemptions)
        says = f"over {KV_CACHE_FULL:.0%}: {'requests wait or were preempted for it' if suffers else 'nearly full'}"
        grade, hint = Grade.WARN, cache_advice(budget)
    yield _reading("kv_cache_used", "share", used, f"{used:.1%}", grade=grade, says=says, hint=hint)


def _preemptions(of: Figures, budget: Budget) -> Iterator[Reading]:
    if of.preemptions is not None:
        yield _bad_above_zero(
            "preemptions",
            "requests",
            of.preemptions,
            good=f"none {of.since}",
            bad=f"thrown out of the KV cache {of.since}, and computed anew",
            hint=preemption_advice(of, budget) if of.preemptions else "",
        )


def _rejected(of: Figures, _: Budget) -> Iterator[Reading]:
    if of.rejected:
        yield _bad_above_zero(
            "requests_rejected",
            "requests",
            of.rejected,
            good="",
            bad="turned away because the queue was full",
            hint="Raise the limits of the queue (max_num_queued_reqs, max_num_queued_tokens), or add a replica.",
        )


def _finished(of: Figures, _: Budget) -> Iterator[Reading]:
    if not of.finished:
        return
    ended = {reason: n for reason, n in of.finished.items() if n}
    shown = f"{_count(sum(ended.values()))}"
    shown += f" ({', '.join(f'{reason} {_count(n)}' for reason, n in ended.items())})" if ended else ""
    failed = of.finished.get("error", 0)
    grade, says, hint = Grade.PLAIN, "", ""
    if failed:
        grade, says, hint = Grade.WARN, f"{_count(failed)} ended in an error", "`tpudeploy logs PROFILE` has its words."
    yield Reading(
        name="requests_finished",
        unit="requests",
        value=dict(of.finished),
        shown=shown,
        grade=grade,
        says=says,
        hint=hint,
    )


def _tokens(of: Figures, _: Budget) -> Iterator[Reading]:
    for name, value in (("prompt_tokens", of.prompt_tokens), ("generation_tokens", of.generation_tokens)):
        if value is not None:
            yield _reading(name, "tokens", value, _count(value), says=of.since)


def _prefix(of: Figures, _: Budget) -> Iterator[Reading]:
    if of.prefix_queried_tokens is None or of.prefix_hit_tokens is None:
        return
    if not of.prefix_queried_tokens:
        says = "nothing was looked up: no requests yet, or prefix caching is off"
        yield Reading(name="prefix_cache_hits", unit="share", value=None, shown="-", grade=Grade.PLAIN, says=says)
        return
    share = of.prefix_hit_tokens / of.prefix_queried_tokens
    yield _reading("prefix_cache_hits", "share", share, f"{share:.1%}", says="of the prompt tokens that were looked up")


def _time(of: Figures, budget: Budget) -> Iterator[Reading]:
    """Where finished requests spent their time: one that mostly waits is slow whatever the chip does."""
    phases = {"waiting": of.queued, "prefilling": of.prefilling, "decoding": of.decoding}
    means = {name: spent.mean for name, spent in phases.items() if spent is not None and spent.mean is not None}
    if len(means) < len(phases):
        return
    shown = ", ".join(f"{name} {_mean(seconds)}" for name, seconds in means.items())
    value, waits = {name: round(seconds, 4) for name, seconds in means.items()}, means["waiting"]
    grade, says, hint = Grade.PLAIN, "mean of all finished requests", ""
    if waits > _QUEUES_LONG and waits > means["prefilling"] + means["decoding"]:
        grade, hint = Grade.WARN, waiting_advice(of, budget)
        says = f"{waits / sum(means.values()):.0%} of the time of all finished requests was waiting"
    yield Reading(name="request_time", unit="seconds", value=value, shown=shown, grade=grade, says=says, hint=hint)


def _latencies(of: Figures, _: Budget) -> Iterator[Reading]:
    for name, found in (("ttft", of.first_token), ("itl", of.between_tokens)):
        if found is not None:
            value = _buckets(found)
            shown = _in_words(found) if value else "-"
            yield Reading(name=name, unit="seconds", value=value, shown=shown, grade=Grade.COARSE, says=_COARSE)


def _memory(of: Figures, _: Budget) -> Iterator[Reading]:
    if of.process_bytes is not None:
        shown = f"{of.process_bytes / 1024**3:.1f} GiB"
        says = "of the API server's process on the machine; none of it is HBM"
        yield _reading("process_memory", "bytes", of.process_bytes, shown, says=says)


_JUDGES: tuple[Callable[[Figures, Budget], Iterator[Reading]], ...] = (
    _asleep,
    _running,
    _waiting,
    _kv_cache,
    _preemptions,
    _rejected,
    _finished,
    _tokens,
    _prefix,
    _time,
    _latencies,
    _memory,
)


def _reading(
    name: str, unit: str, value: float, shown: str, *, grade: Grade = Grade.PLAIN, says: str = "", hint: str = ""
) -> Reading:
    return Reading(name=name, unit=unit, value=value, shown=shown, grade=grade, says=says, hint=hint)


def _bad_above_zero(name: str, unit: str, value: float, *, good: str, bad: str, hint: str) -> Reading:
    if not value:
        return _reading(name, unit, value, "0", grade=Grade.OK, says=good)
    return _reading(name, unit, value, _count(value), grade=Grade.WARN, says=bad, hint=hint)


def _buckets(of: Histogram) -> Mapping[str, float] | None:
    """Bounds, in seconds; the last bucket has none, and is left out."""
    half, most = of.within(0.5), of.within(0.95)
    if half is None or most is None:
        return None
    known = {"half_within": half, "p95_within": most}
    return {"count": of.count, **{name: bound for name, bound in known.items() if bound != float("inf")}}


def _in_words(of: Histogram) -> str:
    half, most = of.within(0.5), of.within(0.95)
    return f"half within {_seconds(half)}, 95 % within {_seconds(most)} ({_count(of.count)} in all)"


def _seconds(bound: float | None) -> str:
    return "no bound that it knows" if bound in {None, float("inf")} else f"{bound:g} s"


def _mean(seconds: float) -> str:
    return f"{seconds:.3g} s"


def _count(of: float) -> str:
    return f"{of:,.0f}"
