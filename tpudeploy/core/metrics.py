"""Figures of a running engine in words: each beside its threshold, with what to do where it is beyond.

What a server's histogram tells of latencies is a bucket, not a quantile: it is shown as such and judged by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tpudeploy.domain.metrics import Figures, Grade, Histogram, Reading

# As in the alerts that operators set (KV cache usage is 1 - free blocks / all; what is only kept for reuse is free).
KV_CACHE_FULL = 0.85
_COARSE = "server-side histogram, coarse"
_ROOM = (
    "More room for KV cache: a smaller max_model_len or kv_cache_dtype: fp8; or more chips, or another replica.\n"
    "`tpudeploy size PROFILE --sweep` says what each would hold."
)


def readings(of: Figures) -> tuple[Reading, ...]:
    """In the order of a look: what happens now, what went wrong, what was done, how fast, how much memory."""
    return tuple(reading for judge in _JUDGES for reading in judge(of))


def _asleep(of: Figures) -> Iterator[Reading]:
    if of.is_awake is False:
        says, hint = "the engine sleeps, and answers nobody", "Wake it up: POST /wake_up, or restart the server."
        yield Reading(name="engine", unit="", value=None, shown="asleep", grade=Grade.WARN, says=says, hint=hint)


def _running(of: Figures) -> Iterator[Reading]:
    if of.running is not None:
        says = "idle" if not of.running else ""
        yield _reading("requests_running", "requests", of.running, _count(of.running), says=says)


def _waiting(of: Figures) -> Iterator[Reading]:
    if not of.waiting:
        return
    total = sum(of.waiting.values())
    reasons = ", ".join(f"{reason} {_count(n)}" for reason, n in of.waiting.items() if reason and n)
    shown = f"{_count(total)} ({reasons})" if reasons else _count(total)
    grade, says, hint = Grade.OK, "nobody waits", ""
    if of.waiting.get("capacity", 0) > 0 or (total and not of.waiting.keys() - {""}):
        grade, says = Grade.WARN, "more is asked of it than it has room for"
        is_full = of.kv_cache_used is not None and of.kv_cache_used > KV_CACHE_FULL
        hint = _ROOM if is_full else "Raise max_num_seqs or max_num_batched_tokens while there is KV cache left."
    elif total:
        grade, says = Grade.WARN, "deferred for something else than room: a LoRA budget, a KV transfer"
    yield Reading(
        name="requests_waiting", unit="requests", value=dict(of.waiting), shown=shown, grade=grade, says=says, hint=hint
    )


def _kv_cache(of: Figures) -> Iterator[Reading]:
    used = of.kv_cache_used
    if used is None:
        return
    grade, says, hint = Grade.OK, f"below {KV_CACHE_FULL:.0%}", ""
    if used > KV_CACHE_FULL:
        suffers = sum(of.waiting.values()) > 0 or bool(of.preemptions)
        says = f"over {KV_CACHE_FULL:.0%}: {'requests wait or were preempted for it' if suffers else 'nearly full'}"
        grade, hint = Grade.WARN, _ROOM
    yield _reading("kv_cache_used", "share", used, f"{used:.1%}", grade=grade, says=says, hint=hint)


def _preemptions(of: Figures) -> Iterator[Reading]:
    if of.preemptions is not None:
        yield _bad_above_zero(
            "preemptions",
            "requests",
            of.preemptions,
            good="none since the server started",
            bad="thrown out of the KV cache since the server started, and computed anew",
            hint="Lower max_num_seqs, so that fewer grow at once; or give the KV cache more room.",
        )


def _rejected(of: Figures) -> Iterator[Reading]:
    if of.rejected:
        yield _bad_above_zero(
            "requests_rejected",
            "requests",
            of.rejected,
            good="",
            bad="turned away because the queue was full",
            hint="Raise the limits of the queue (max_num_queued_reqs, max_num_queued_tokens), or add a replica.",
        )


def _finished(of: Figures) -> Iterator[Reading]:
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


def _tokens(of: Figures) -> Iterator[Reading]:
    for name, value in (("prompt_tokens", of.prompt_tokens), ("generation_tokens", of.generation_tokens)):
        if value is not None:
            yield _reading(name, "tokens", value, _count(value), says="since the server started")


def _prefix(of: Figures) -> Iterator[Reading]:
    if of.prefix_queried_tokens is None or of.prefix_hit_tokens is None:
        return
    if not of.prefix_queried_tokens:
        says = "nothing was looked up: no requests yet, or prefix caching is off"
        yield Reading(name="prefix_cache_hits", unit="share", value=None, shown="-", grade=Grade.PLAIN, says=says)
        return
    share = of.prefix_hit_tokens / of.prefix_queried_tokens
    yield _reading("prefix_cache_hits", "share", share, f"{share:.1%}", says="of the prompt tokens that were looked up")


def _latencies(of: Figures) -> Iterator[Reading]:
    for name, found in (("ttft", of.first_token), ("itl", of.between_tokens)):
        if found is not None:
            value = _buckets(found)
            shown = _in_words(found) if value else "-"
            yield Reading(name=name, unit="seconds", value=value, shown=shown, grade=Grade.COARSE, says=_COARSE)


def _memory(of: Figures) -> Iterator[Reading]:
    if of.process_bytes is not None:
        shown = f"{of.process_bytes / 1024**3:.1f} GiB"
        says = "of the API server's process on the machine; none of it is HBM"
        yield _reading("process_memory", "bytes", of.process_bytes, shown, says=says)


_JUDGES: tuple[Callable[[Figures], Iterator[Reading]], ...] = (
    _asleep,
    _running,
    _waiting,
    _kv_cache,
    _preemptions,
    _rejected,
    _finished,
    _tokens,
    _prefix,
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


def _count(of: float) -> str:
    return f"{of:,.0f}"
