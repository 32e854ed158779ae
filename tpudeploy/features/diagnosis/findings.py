"""What is wrong with a server that runs: one row a finding, judged by its metrics, with the remedy.

The bounds of the chips are those of `benchmark.roofline`: least times, from the parameters of the model and the peak
figures of the chip. UNVERIFIED on a chip: how many times its bound a healthy server takes. `_SLOW_STEP` leaves the
measured single-user steps of Gemma 4 E2B (1.4 to 1.7 times) and the eight-user ones (2.5 times) far behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.features.benchmark.roofline import Roofline
from tpudeploy.features.diagnosis.window import ServingWindow
from tpudeploy.metrics.advice import (
    KV_CACHE_FULL,
    Budget,
    cache_advice,
    is_full,
    preemption_advice,
    waiting_advice,
)
from tpudeploy.text.words import latency, plural

_LONG_QUEUE = 1.0  # seconds
_HANG_UPS = 0.05  # of the requests that ended
_SLOW_STEP = 5.0  # times the bound of the chip
_NEAR_BOUND = 2.0  # times it
_FEW = 16  # requests of one engine, up to which its bound says something about a step
_SLOW_PROMPT = 10.0  # times the bound of the chip
_LONG_PREFILL = 1.0  # seconds
_LONG_PROMPT = 1000  # tokens
_UNCACHED = 0.01  # of the tokens that were looked up


class Weight(StrEnum):
    """How much a finding counts: a `PROBLEM` needs a remedy, a `NOTE` explains a figure."""

    PROBLEM = "problem"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFinding:
    """One finding. `evidence` has the figures it is from, `remedy` what to do."""

    name: str
    weight: Weight
    evidence: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvidence:
    """What the rules judge: a window of a server, what is known of its memory, and the bounds of its chips."""

    window: ServingWindow
    budget: Budget = None
    roofline: Roofline | None = None

    @property
    def running_per_engine(self) -> float:
        return self.window.running / (1 if self.roofline is None else self.roofline.ranks)

    @property
    def least_tpot_seconds(self) -> float | None:
        """Return the least time of a step with today's requests, or None without a model of the chips."""
        return None if self.roofline is None else self.roofline.step_seconds(max(1.0, self.running_per_engine))

    @property
    def least_ttft_seconds(self) -> float | None:
        """Return the least time of a prompt of average length, or None without a model or requests."""
        length = self.window.prompt_length
        return None if self.roofline is None or length is None else self.roofline.prompt_seconds(length)


Answer = tuple[str, str] | None  # evidence and remedy
_RESTART = "`tpudeploy apply -replace` with its address requests another slice for it"


def findings(evidence: ServerEvidence) -> tuple[ServerFinding, ...]:
    """Return what is wrong with a server, in the order of the rules: what stops it comes first."""
    answers = ((name, weight, judge(evidence)) for name, (weight, judge) in RULES.items())
    return tuple(
        ServerFinding(name=name, weight=weight, evidence=answer[0], remedy=answer[1])
        for name, weight, answer in answers
        if answer is not None
    )


def _unmeasured(server: ServerEvidence) -> Answer:
    if server.window.now.running is not None:
        return None
    return (
        "It reports no statistics.",
        "Remove `disable_log_stats` from serving.args. Other servers than vLLM have none.",
    )


def _asleep(server: ServerEvidence) -> Answer:
    if server.window.now.is_awake is not False:
        return None
    return "The engine sleeps and doesn't answer.", "Wake it up: POST /wake_up, or restart the server."


def _restarted(server: ServerEvidence) -> Answer:
    if not server.window.was_restarted:
        return None
    evidence = "Its counters started again between the two looks: the server restarted."
    return (
        evidence,
        "`tpudeploy logs PROFILE -explain` names the cause of a crash. Clients lost the requests in flight.",
    )


def _stalled(server: ServerEvidence) -> Answer:
    """Requests run at both looks, and not one token was computed in between."""
    window, within = server.window, server.window.within
    is_busy = bool(window.before.running) and bool(window.now.running)
    if not is_busy or within.generation_tokens != 0 or within.prompt_tokens != 0 or window.requests:
        return None
    evidence = f"{_requests(window.running)} in flight, and no token computed in {window.seconds:.0f} s."
    hint = f"The engine hangs. `tpudeploy logs PROFILE` shows its last lines, and {_RESTART}."
    return evidence, f"{hint} If it hangs again on this machine, `tpudeploy report-host` reports its hardware."


def _erroring(server: ServerEvidence) -> Answer:
    failed = server.window.within.finished.get("error", 0.0)
    if failed < 1:
        return None
    evidence = f"{failed:,.0f} of {_requests(server.window.requests)} ended in an error {server.window.within.since}."
    return evidence, "`tpudeploy logs PROFILE` shows the errors."


def _rejecting(server: ServerEvidence) -> Answer:
    rejected = server.window.within.rejected
    if not rejected:
        return None
    evidence = f"{_requests(rejected)} rejected {server.window.within.since}: the queue was full."
    return evidence, "Raise max_num_queued_reqs and max_num_queued_tokens, or add a replica."


def _hang_ups(server: ServerEvidence) -> Answer:
    aborted = server.window.within.finished.get("abort", 0.0)
    if aborted < 1 or aborted < _HANG_UPS * server.window.requests:
        return None
    evidence = f"{aborted:,.0f} of {_requests(server.window.requests)} ended because the client hung up."
    return evidence, "If answers take longer than the clients' timeout, see the other findings, or raise the timeout."


def _overloaded(server: ServerEvidence) -> Answer:
    """Requests wait for room at both looks, or those that ended have waited longer than they ran."""
    before, now = (_waiting_for_room(each.waiting) for each in (server.window.before, server.window.now))
    queued, ran = _mean_queue(server)
    waits = queued is not None and queued > _LONG_QUEUE and queued > (ran or 0.0)
    if not waits and not (before and now):
        return None
    grew = f", {before:,.0f} before" if before != now else ""
    time = "" if queued is None else f" Requests that ended had waited {latency(queued)} on average."
    return f"{_requests(now)} waiting for room{grew}.{time}", waiting_advice(server.window.within, server.budget)


def _deferred(server: ServerEvidence) -> Answer:
    count = server.window.now.waiting.get("deferred", 0.0)
    if not count or not server.window.before.waiting.get("deferred"):
        return None
    evidence = f"{_requests(count)} deferred for another reason than room: a LoRA budget or a KV transfer."
    return evidence, "Raise max_loras, or check the server that the KV cache is transferred from."


def _cache_full(server: ServerEvidence) -> Answer:
    now = server.window.now
    if not is_full(now) or not (sum(now.waiting.values()) or server.window.within.preemptions):
        return None
    evidence = (
        f"{now.kv_cache_used:.0%} of the KV cache is in use, above {KV_CACHE_FULL:.0%}, and requests wait for it."
    )
    return evidence, cache_advice(server.budget)


def _preempting(server: ServerEvidence) -> Answer:
    count = server.window.within.preemptions
    if not count:
        return None
    evidence = f"{_requests(count)} preempted {server.window.within.since}: each is computed again from its beginning."
    return evidence, preemption_advice(server.window.within, server.budget)


def _slow_prefill(server: ServerEvidence) -> Answer:
    spent, least = server.window.within.prefilling, server.least_ttft_seconds
    mean = None if spent is None else spent.mean
    if mean is None or least is None or mean < _LONG_PREFILL or mean < _SLOW_PROMPT * least:
        return None
    evidence = (
        f"A prompt of {server.window.prompt_length:,.0f} tokens takes {latency(mean)} without its time in the queue, "
        f"{mean / least:.0f} times the chips' bound of {latency(least)}."
    )
    return evidence, (
        "Prompts share their steps with running requests: raise max_num_batched_tokens, or add a replica. If only the "
        "first request of a length is slow, the server compiles on demand: `tpudeploy verify PROFILE` shows what is "
        "in effect."
    )


def _slow_decode(server: ServerEvidence) -> Answer:
    tpot, least = server.window.tpot_seconds, server.least_tpot_seconds
    if tpot is None or least is None or server.running_per_engine > _FEW or tpot < _SLOW_STEP * least:
        return None
    ratio = tpot / least
    evidence = (
        f"A token takes {latency(tpot)} with {_requests(server.window.running)} at a time, {ratio:.0f} times the "
        f"chips' bound of {latency(least)}."
    )
    return evidence, (
        "So few requests don't keep the chips that busy. `tpudeploy verify PROFILE` shows settings that aren't in "
        "effect; `enforce_eager`, speculation that is rarely right and a busy host CPU also slow each step. Compare "
        "with a run of yours: `tpudeploy bench PROFILE`."
    )


def _crowded(server: ServerEvidence) -> Answer:
    tpot, least = server.window.tpot_seconds, server.least_tpot_seconds
    if tpot is None or least is None or server.running_per_engine <= _FEW or tpot < _SLOW_STEP * least:
        return None
    evidence = f"A token takes {latency(tpot)}: {_requests(server.window.running)} share each step."
    return (
        evidence,
        "A lower max_num_seqs makes tokens faster and the queue longer; another replica makes both shorter.",
    )


def _at_the_bound(server: ServerEvidence) -> Answer:
    tpot, least = server.window.tpot_seconds, server.least_tpot_seconds
    if tpot is None or least is None or tpot > _NEAR_BOUND * least:
        return None
    evidence = f"A token takes {latency(tpot)}, and the chips need at least {latency(least)} for it."
    return evidence, "Only more chips per replica, smaller weights or speculative decoding make single requests faster."


def _uncached(server: ServerEvidence) -> Answer:
    within, length = server.window.within, server.window.prompt_length
    if length is None or length < _LONG_PROMPT or within.prefix_queried_tokens is None:
        return None
    if within.prefix_queried_tokens and (within.prefix_hit_tokens or 0.0) >= _UNCACHED * within.prefix_queried_tokens:
        return None
    what = "found in the prefix cache" if within.prefix_queried_tokens else "looked up: prefix caching is off"
    evidence = f"Prompts have {length:,.0f} tokens on average, and none was {what}."
    return evidence, "If prompts share their beginning, put what they share first, and turn on prefix caching."


def _idle(server: ServerEvidence) -> Answer:
    if server.window.now.running is None or server.window.running or server.window.requests:
        return None
    return (
        f"No request ran in these {server.window.seconds:.0f} s.",
        "Repeat it under load, or look longer: -window 5m.",
    )


RULES: dict[str, tuple[Weight, Callable[[ServerEvidence], Answer]]] = {
    "unmeasured": (Weight.PROBLEM, _unmeasured),
    "asleep": (Weight.PROBLEM, _asleep),
    "restarted": (Weight.PROBLEM, _restarted),
    "stalled": (Weight.PROBLEM, _stalled),
    "erroring": (Weight.PROBLEM, _erroring),
    "rejecting": (Weight.PROBLEM, _rejecting),
    "overloaded": (Weight.PROBLEM, _overloaded),
    "cache-full": (Weight.PROBLEM, _cache_full),
    "preempting": (Weight.PROBLEM, _preempting),
    "deferred": (Weight.PROBLEM, _deferred),
    "slow-prefill": (Weight.PROBLEM, _slow_prefill),
    "slow-decode": (Weight.PROBLEM, _slow_decode),
    "hang-ups": (Weight.PROBLEM, _hang_ups),
    "crowded": (Weight.NOTE, _crowded),
    "at-the-bound": (Weight.NOTE, _at_the_bound),
    "uncached": (Weight.NOTE, _uncached),
    "idle": (Weight.NOTE, _idle),
}


def _requests(count: float) -> str:
    return plural(round(count), "request")


def _waiting_for_room(waiting: Mapping[str, float]) -> float:
    """Return the requests that wait for room; a server that gives no reasons has all of them under ""."""
    return waiting.get("capacity", 0.0) + waiting.get("", 0.0)


def _mean_queue(server: ServerEvidence) -> tuple[float | None, float | None]:
    """Return how long requests that ended have waited, and how long they ran."""
    within = server.window.within
    waited = None if within.queued is None else within.queued.mean
    parts = [spent.mean for spent in (within.prefilling, within.decoding) if spent is not None and spent.mean]
    return waited, sum(parts) if parts else None
