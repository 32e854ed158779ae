"""/metrics of a running vLLM, read into figures, through whichever door answers. Asks for no completion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tpudeploy.adapters.doors import DOORS, opened
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import Figures, Histogram
from tpudeploy.domain.slices import Slice

# Names of vLLM 0.32 (v1/metrics/loggers.py), checked against a live dump. The parser takes `_total` off of counters.
_RESIDENT = "process_resident_memory_bytes"
_FIRST_TOKEN, _BETWEEN = "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds"
_REASONS = "vllm:num_requests_waiting_by_reason"
_WAITING = "vllm:num_requests_waiting"
_FAMILIES = (
    *("vllm:num_requests_running", _WAITING, _REASONS, "vllm:kv_cache_usage_perc", "vllm:num_preemptions"),
    *("vllm:admission_rejections", "vllm:request_success", "vllm:prompt_tokens", "vllm:generation_tokens"),
    *("vllm:prefix_cache_queries", "vllm:prefix_cache_hits", "vllm:engine_sleep_state"),
    *(_FIRST_TOKEN, _BETWEEN, _RESIDENT),
)


class HttpMeter:
    """See `ports.Meter`. `has_iap`: tunnels can be dug. vLLM guards /v1 with its key, and not this."""

    def __init__(self, *, has_iap: bool, timeout: float = 5.0) -> None:
        self._has_iap = has_iap
        self._timeout = timeout

    def figures(self, deployment: Deployment, found: Slice) -> tuple[str, Figures | Unknown]:
        tried: list[str] = []
        for door in DOORS[deployment.health.via]:
            if door is Via.NODE or (door is Via.IAP and not self._has_iap):
                continue
            with opened(door, deployment, found) as url:
                if url is None:
                    continue
                told = self.at(url)
            if isinstance(told, Figures):
                return url, told
            tried.append(f"{door}: {told.because}")
        return "", Unknown(because="; ".join(tried) or "the machine has no address that is reached from here")

    def at(self, url: str) -> Figures | Unknown:
        try:
            return figures(VllmClient(url, timeout=self._timeout).metrics())
        except (NoAnswer, BadAnswer) as cause:
            return Unknown(because=str(cause))
        except ValueError:
            return Unknown(because="what it says in /metrics is none of Prometheus' format")


def figures(text: str) -> Figures:
    """Of all engines and models in one text. Raise ValueError for what is no text of Prometheus'."""
    from prometheus_client.parser import text_string_to_metric_families

    mine = "".join(f"{line}\n" for line in text.splitlines() if line.removeprefix("# TYPE ").startswith(_FAMILIES))
    known: dict[str, list[Any]] = defaultdict(list)
    for family in text_string_to_metric_families(mine):
        for sample in family.samples:
            known[sample.name.removesuffix("_total")].append(sample)
    counted = {name: float(sum(s.value for s in samples)) for name, samples in known.items()}
    awake = [s.value for s in known["vllm:engine_sleep_state"] if s.labels.get("sleep_state") == "awake"]
    return Figures(
        running=counted.get("vllm:num_requests_running"),
        waiting=_by(known[_REASONS], "reason") or _by(known[_WAITING], "reason"),
        kv_cache_used=max((s.value for s in known["vllm:kv_cache_usage_perc"]), default=None),
        preemptions=counted.get("vllm:num_preemptions"),
        rejected=counted.get("vllm:admission_rejections"),
        finished=_by(known["vllm:request_success"], "finished_reason"),
        prompt_tokens=counted.get("vllm:prompt_tokens"),
        generation_tokens=counted.get("vllm:generation_tokens"),
        prefix_queried_tokens=counted.get("vllm:prefix_cache_queries"),
        prefix_hit_tokens=counted.get("vllm:prefix_cache_hits"),
        first_token=_histogram(known, _FIRST_TOKEN),
        between_tokens=_histogram(known, _BETWEEN),
        process_bytes=counted.get(_RESIDENT),
        is_awake=all(awake) if awake else None,
    )


def _by(samples: Iterable[Any], label: str) -> Mapping[str, float]:
    found: dict[str, float] = defaultdict(float)
    for sample in samples:
        found[sample.labels.get(label, "")] += sample.value
    return dict(found)


def _histogram(known: Mapping[str, Iterable[Any]], name: str) -> Histogram | None:
    buckets: dict[float, float] = defaultdict(float)
    for sample in known.get(f"{name}_bucket", ()):
        buckets[float(sample.labels["le"])] += sample.value
    if not buckets:
        return None
    bounds = tuple(sorted(buckets))
    total = sum(s.value for s in known.get(f"{name}_sum", ()))
    return Histogram(bounds=bounds, counts=tuple(buckets[b] for b in bounds), sum=total)
