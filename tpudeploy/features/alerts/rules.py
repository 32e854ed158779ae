"""RULES: the alert rules of a deployment, one function and one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tpudeploy.features.alerts.watched import SCRAPE_SECONDS, WAITING_SECONDS, Watched
from tpudeploy.metrics.advice import KV_CACHE_FULL


class AlertSeverity(StrEnum):
    """`critical` pages someone at once; `warning` can wait until working hours."""

    WARNING = "warning"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert rule. `expr` is PromQL and must be true for `held_seconds`. Texts may contain Prometheus' templates."""

    name: str
    expr: str
    held_seconds: int
    severity: AlertSeverity
    summary: str
    description: str

    def to_dict(self, deployment: str) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": f"{self.held_seconds}s",
            "labels": {"severity": str(self.severity), "deployment": deployment},
            "annotations": {"summary": self.summary, "description": self.description},
        }


def group(deployment: Watched) -> dict[str, Any]:
    """Return the rules of one deployment, which are evaluated together."""
    alerts = [alert for rule in RULES for alert in rule(deployment)]
    return {
        "name": f"vllm-{deployment.name}",
        "interval": f"{SCRAPE_SECONDS}s",
        "rules": [alert.to_dict(deployment.name) for alert in alerts],
    }


def _down(deployment: Watched) -> Iterator[Alert]:
    """Yield alerts for missing servers. The series of a preempted machine end, so `up == 0` would never match."""
    serving = f"count(up{deployment.scrape} == 1)"
    yield Alert(
        name="VllmDown",
        expr=f"({serving} or vector(0)) == 0",
        held_seconds=60,
        severity=AlertSeverity.CRITICAL,
        summary=f"No server of {deployment.name} answers",
        description=f"For a minute, /metrics could not be read from any server; {deployment.replicas} should answer. "
        "`tpudeploy status` says whether a slice was preempted; `tpudeploy logs --explain` says why a boot failed.",
    )
    if deployment.replicas > 1:
        yield Alert(
            name="VllmReplicaDown",
            expr=f"{serving} < {deployment.replicas}",
            held_seconds=60,
            severity=AlertSeverity.WARNING,
            summary=f"Only {{{{ $value }}}} of {deployment.replicas} servers of {deployment.name} answer",
            description="`tpudeploy status` says which; `tpudeploy apply` replaces preempted slices.",
        )


def _no_progress(deployment: Watched) -> Iterator[Alert]:
    """Yield an alert for a hang or a compilation. The longest published prefill without either took 55 s.

    It looks at each engine: the tokens of the others would hide one that hangs. An engine that pools generates no
    token, so its progress is the prompts that it has read (vllm/v1/metrics/stats.py counts them when it answers).
    """
    engine = deployment.engine
    counters = (("generation", deployment.completes), ("prompt", deployment.pools))
    idle = [f"rate(vllm:{kind}_tokens_total{engine}[1m]) == 0" for kind, is_counted in counters if is_counted]
    does = "generates no token" if deployment.completes else "answers none"
    yield Alert(
        name="VllmNoProgress",
        expr=" and ".join((f"vllm:num_requests_running{engine} > 0", *idle)),
        held_seconds=60,
        severity=AlertSeverity.CRITICAL,
        summary=f"{deployment.name} runs {{{{ $value }}}} requests and {does}",
        description=f"No {'token' if deployment.completes else 'answer'} for two minutes on "
        "{{ $labels.instance }}: the engine hangs, or compiles a graph that the warm-up did not cover. "
        "`tpudeploy logs` shows which.",
    )


def _kv_cache(deployment: Watched) -> Iterator[Alert]:
    """Yield alerts for a full KV cache. Blocks that only the prefix cache holds count as free."""
    full = f"vllm:kv_cache_usage_perc{deployment.engine} > {KV_CACHE_FULL:g}"
    yield Alert(
        name="VllmKvCacheNearlyFull",
        expr=f"{_over_engines('max', f'vllm:kv_cache_usage_perc{deployment.engine}')} > {KV_CACHE_FULL:g}",
        held_seconds=60,
        severity=AlertSeverity.WARNING,
        summary=f"The KV cache of {deployment.name} is {{{{ $value | humanizePercentage }}}} full",
        description="That is the fullest one of its engines. Requests will soon wait or be preempted there. "
        "`tpudeploy size --sweep` says what would hold more; another replica shares the load.",
    )
    waiting = f'vllm:num_requests_waiting_by_reason{deployment.engine[:-1]},reason="capacity"}}'
    yield Alert(
        name="VllmKvCacheExhausted",
        expr=_over_engines("max", f"{full} and ignoring (reason) {waiting} > 0"),
        held_seconds=300,
        severity=AlertSeverity.CRITICAL,
        summary=f"Requests wait for the KV cache of {deployment.name}",
        description="For five minutes, the KV cache of an engine has been full, and requests wait there for room. "
        "`tpudeploy metrics` shows which.",
    )


def _queue(deployment: Watched) -> Iterator[Alert]:
    yield Alert(
        name="VllmQueueSaturated",
        expr=f"{_over_engines('sum', f'vllm:num_requests_waiting{deployment.engine}')} > 0",
        held_seconds=WAITING_SECONDS,
        severity=AlertSeverity.WARNING,
        summary=f"{{{{ $value }}}} requests wait at {deployment.name}",
        description=f"For {WAITING_SECONDS} s, at least one request was queued at its servers: they get more requests "
        "than they can serve. `tpudeploy status` shows the load of each replica.",
    )


def _batch(deployment: Watched) -> Iterator[Alert]:
    if deployment.max_num_seqs is None:
        return
    running = f"vllm:num_requests_running{deployment.engine}"
    yield Alert(
        name="VllmBatchFull",
        # The limit is that of each engine, and each rank of a data-parallel server is one.
        expr=f"{_over_engines('sum', running)} >= {deployment.max_num_seqs} * {_over_engines('count', running)}",
        held_seconds=300,
        severity=AlertSeverity.WARNING,
        summary=f"{deployment.name} runs its maximum of {{{{ $value }}}} requests",
        description=f"For five minutes, each of its engines runs {deployment.max_num_seqs}. serving.max_num_seqs makes "
        "other requests wait: raise it if the KV cache has room, else add a replica.",
    )


def _preempting(deployment: Watched) -> Iterator[Alert]:
    rate = f"rate(vllm:num_preemptions_total{deployment.engine}[5m])"
    yield Alert(
        name="VllmPreempting",
        expr=f"{_over_engines('sum', rate)} > 0",
        held_seconds=60,
        severity=AlertSeverity.WARNING,
        summary=f"{deployment.name} preempts requests",
        description="The KV cache of an engine cannot hold all running requests, and preempted ones are computed "
        "again. `tpudeploy metrics` shows which. Lower serving.max_num_seqs, or give the cache more room.",
    )


def _ttft(deployment: Watched) -> Iterator[Alert]:
    """Yield an alert without a recording rule, because Cloud Monitoring imports alert rules only."""
    if deployment.ttft_seconds is None:
        return
    buckets = f"rate(vllm:time_to_first_token_seconds_bucket{deployment.engine}[5m])"
    yield Alert(
        name="VllmTtftHigh",
        expr=f"histogram_quantile(0.95, sum by (job, model_name, le) ({buckets})) > {deployment.ttft_seconds:g}",
        held_seconds=300,
        severity=AlertSeverity.WARNING,
        summary=f"5 % of requests wait longer than {deployment.ttft_seconds:g} s for {deployment.name}'s first token",
        description="For five minutes, the 95th percentile is about {{ $value | humanizeDuration }}, by the buckets of "
        f"the server's own histogram.{f' {deployment.ttft_source}' if deployment.ttft_source else ''}",
    )


def _over_engines(operator: str, series: str) -> str:
    """Return PromQL for one value of a deployment, over all engines of all its replicas."""
    return f"{operator} by (job, model_name) ({series})"


# The order is that of importance: whether it serves, whether it keeps up, whether it is fast.
RULES: tuple[Callable[[Watched], Iterator[Alert]], ...] = (
    _down,
    _no_progress,
    _kv_cache,
    _queue,
    _batch,
    _preempting,
    _ttft,
)
