"""RULES: what is worth telling somebody about a deployment. One function each, one row here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tpudeploy.core.alerts.rule import Alert, Group, Severity
from tpudeploy.core.alerts.watched import SCRAPE_SECONDS, WAITING_SECONDS, Watched
from tpudeploy.core.load import KV_CACHE_FULL


def group(of: Watched) -> Group:
    rules = tuple(rule for rules_of in RULES for rule in rules_of(of))
    return Group(deployment=of.name, every_seconds=SCRAPE_SECONDS, rules=rules)


def _down(of: Watched) -> Iterator[Alert]:
    """A machine that was preempted takes its agent along: its series end, and `up == 0` would never be seen."""
    serving = f"count(up{of.scrape} == 1)"
    yield Alert(
        name="VllmDown",
        expr=f"({serving} or vector(0)) == 0",
        held_seconds=60,
        severity=Severity.CRITICAL,
        summary=f"No server of {of.name} answers",
        description=f"For a minute /metrics could be read of none, where {of.replicas} should be. `tpudeploy status` "
        "says whether its slice was preempted; `tpudeploy logs --explain` names what a boot died of.",
    )
    if of.replicas > 1:
        yield Alert(
            name="VllmReplicaDown",
            expr=f"{serving} < {of.replicas}",
            held_seconds=60,
            severity=Severity.WARNING,
            summary=f"Only {{{{ $value }}}} of {of.replicas} servers of {of.name} answer",
            description="`tpudeploy status` says which; `tpudeploy apply` asks again for what was preempted.",
        )


def _no_progress(of: Watched) -> Iterator[Alert]:
    """A hang, or a shape that is being compiled. The longest published prefill that is neither took 55 s."""
    yield Alert(
        name="VllmNoProgress",
        expr=f"vllm:num_requests_running{of.engine} > 0 and rate(vllm:generation_tokens_total{of.engine}[1m]) == 0",
        held_seconds=60,
        severity=Severity.CRITICAL,
        summary=f"{of.name} runs {{{{ $value }}}} requests and makes no token",
        description="Not one token for two minutes on {{ $labels.instance }}: the engine hangs, or compiles a graph "
        "that no warm-up had. `tpudeploy logs` shows which.",
    )


def _kv_cache(of: Watched) -> Iterator[Alert]:
    """Blocks that only the prefix cache still holds count as free, so this share is what running requests need."""
    full = f"vllm:kv_cache_usage_perc{of.engine} > {KV_CACHE_FULL:g}"
    yield Alert(
        name="VllmKvCacheNearlyFull",
        expr=full,
        held_seconds=60,
        severity=Severity.WARNING,
        summary=f"The KV cache of {of.name} is {{{{ $value | humanizePercentage }}}} full",
        description="On {{ $labels.instance }}. Soon requests will wait or be preempted. `tpudeploy size --sweep` says "
        "what would hold more; another replica shares the load.",
    )
    waiting = f'vllm:num_requests_waiting_by_reason{of.engine[:-1]},reason="capacity"}}'
    yield Alert(
        name="VllmKvCacheExhausted",
        expr=f"{full} and ignoring (reason) {waiting} > 0",
        held_seconds=300,
        severity=Severity.CRITICAL,
        summary=f"Requests wait for the KV cache of {of.name}",
        description="On {{ $labels.instance }} it has been full, and requests have waited for room, for five minutes.",
    )


def _queue(of: Watched) -> Iterator[Alert]:
    yield Alert(
        name="VllmQueueSaturated",
        expr=f"vllm:num_requests_waiting{of.engine} > 0",
        held_seconds=WAITING_SECONDS,
        severity=Severity.WARNING,
        summary=f"{{{{ $value }}}} requests wait at {of.name}",
        description=f"For {WAITING_SECONDS} s there was always one on {{{{ $labels.instance }}}} that had not begun: "
        "it is asked for more than it serves.",
    )


def _batch(of: Watched) -> Iterator[Alert]:
    if of.max_num_seqs is None:
        return
    yield Alert(
        name="VllmBatchFull",
        expr=f"vllm:num_requests_running{of.engine} >= {of.max_num_seqs}",
        held_seconds=300,
        severity=Severity.WARNING,
        summary=f"{of.name} runs all {of.max_num_seqs} requests that it may",
        description="On {{ $labels.instance }}, for five minutes. It is serving.max_num_seqs that makes others wait: "
        "raise it where the KV cache has room, else add a replica.",
    )


def _preempting(of: Watched) -> Iterator[Alert]:
    yield Alert(
        name="VllmPreempting",
        expr=f"rate(vllm:num_preemptions_total{of.engine}[5m]) > 0",
        held_seconds=60,
        severity=Severity.WARNING,
        summary=f"{of.name} preempts requests",
        description="On {{ $labels.instance }}: the KV cache cannot hold what was begun, and what is put aside is "
        "computed again. Lower serving.max_num_seqs, or give the cache more room.",
    )


def _ttft(of: Watched) -> Iterator[Alert]:
    """By itself, without a recording rule: Cloud Monitoring takes alert rules over, and nothing that they rest on."""
    if of.ttft_seconds is None:
        return
    buckets = f"rate(vllm:time_to_first_token_seconds_bucket{of.engine}[5m])"
    yield Alert(
        name="VllmTtftHigh",
        expr=f"histogram_quantile(0.95, sum by (job, model_name, le) ({buckets})) > {of.ttft_seconds:g}",
        held_seconds=300,
        severity=Severity.WARNING,
        summary=f"One in twenty waits longer than {of.ttft_seconds:g} s for {of.name}'s first token",
        description="The 95th percentile is about {{ $value | humanizeDuration }}, as the buckets of the server's own "
        f"histogram tell it, for five minutes.{f' {of.ttft_source}' if of.ttft_source else ''}",
    )


# In the order in which they are read: whether it serves, whether it keeps up, whether it is quick.
RULES: tuple[Callable[[Watched], Iterator[Alert]], ...] = (
    _down,
    _no_progress,
    _kv_cache,
    _queue,
    _batch,
    _preempting,
    _ttft,
)
