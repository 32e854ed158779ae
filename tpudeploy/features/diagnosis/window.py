"""What a server did between two looks at its metrics: the growth of its counters, beside its queue at both ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tpudeploy.domain.metrics import EngineFigures, Histogram, Spent

_COUNTS = (
    *("preemptions", "rejected", "prompt_tokens", "generation_tokens"),
    *("prefix_queried_tokens", "prefix_hit_tokens"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWindow:
    """`before` and `now` are the two looks, `seconds` apart; `within` has the counts of this time beside today's queue.

    `was_restarted`: a counter went backwards. Then `within` counts from the start of the server.
    """

    seconds: float
    before: EngineFigures
    now: EngineFigures
    within: EngineFigures
    was_restarted: bool = False

    @property
    def requests(self) -> float:
        """Return the number of requests that ended."""
        return sum(self.within.finished.values())

    @property
    def running(self) -> float:
        """Return how many requests ran at a time: the mean of both looks."""
        return ((self.before.running or 0.0) + (self.now.running or 0.0)) / 2

    @property
    def ttft_seconds(self) -> float | None:
        return _mean(self.within.first_token)

    @property
    def tpot_seconds(self) -> float | None:
        return _mean(self.within.between_tokens)

    @property
    def prompt_length(self) -> float | None:
        """Return the tokens of a prompt, on average, of the requests that ended."""
        tokens = self.within.prompt_tokens
        return tokens / self.requests if tokens and self.requests else None


def serving_window(before: EngineFigures, now: EngineFigures, seconds: float) -> ServingWindow:
    """Return what happened between two looks at the same server."""
    was_restarted = any(later < earlier for earlier, later in _counters(before, now))
    within = now if was_restarted else _growth(before, now)
    since = "since it restarted" if was_restarted else f"in these {seconds:.0f} s"
    return ServingWindow(
        seconds=seconds,
        before=before,
        now=now,
        within=replace(within, since=since),
        was_restarted=was_restarted,
    )


def _counters(before: EngineFigures, now: EngineFigures) -> Iterator[tuple[float, float]]:
    for name in _COUNTS:
        earlier, later = getattr(before, name), getattr(now, name)
        if earlier is not None and later is not None:
            yield earlier, later
    yield from ((count, now.finished[reason]) for reason, count in before.finished.items() if reason in now.finished)


def _growth(before: EngineFigures, now: EngineFigures) -> EngineFigures:
    """Return the later figures, with what was added to each counter."""
    return replace(
        now,
        finished=_by_reason(before.finished, now.finished),
        preemptions=_difference(before.preemptions, now.preemptions),
        rejected=_difference(before.rejected, now.rejected),
        prompt_tokens=_difference(before.prompt_tokens, now.prompt_tokens),
        generation_tokens=_difference(before.generation_tokens, now.generation_tokens),
        prefix_queried_tokens=_difference(before.prefix_queried_tokens, now.prefix_queried_tokens),
        prefix_hit_tokens=_difference(before.prefix_hit_tokens, now.prefix_hit_tokens),
        queued=_spent(before.queued, now.queued),
        prefilling=_spent(before.prefilling, now.prefilling),
        decoding=_spent(before.decoding, now.decoding),
        first_token=_added(before.first_token, now.first_token),
        between_tokens=_added(before.between_tokens, now.between_tokens),
    )


def _difference(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before


def _by_reason(before: Mapping[str, float], now: Mapping[str, float]) -> Mapping[str, float]:
    return {reason: count - before.get(reason, 0.0) for reason, count in now.items()}


def _spent(before: Spent | None, now: Spent | None) -> Spent | None:
    if before is None or now is None:
        return None
    return Spent(seconds=now.seconds - before.seconds, requests=now.requests - before.requests)


def _added(before: Histogram | None, now: Histogram | None) -> Histogram | None:
    """Return what was added, or None where the buckets are others."""
    if before is None or now is None or before.bounds != now.bounds:
        return None
    counts = tuple(later - earlier for earlier, later in zip(before.counts, now.counts, strict=True))
    return Histogram(bounds=now.bounds, counts=counts, sum=now.sum - before.sum)


def _mean(histogram: Histogram | None) -> float | None:
    return histogram.sum / histogram.count if histogram is not None and histogram.count else None
