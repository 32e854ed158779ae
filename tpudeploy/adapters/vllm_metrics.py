"""Reads /metrics of a running vLLM into figures, by the first route that answers. It requests no completion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tpudeploy.adapters.routes import ROUTES, open_route
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain.deployment import Deployment, Via
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import EngineFigures, Histogram, Spent
from tpudeploy.domain.slices import Slice

# Names of vLLM 0.32 (v1/metrics/loggers.py), checked against a live dump. The parser takes `_total` off of counters.
_RESIDENT = "process_resident_memory_bytes"
_FIRST_TOKEN, _BETWEEN = "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds"
_QUEUED = "vllm:request_queue_time_seconds"
_PREFILLING = "vllm:request_prefill_time_seconds"
_DECODING = "vllm:request_decode_time_seconds"
_REASONS = "vllm:num_requests_waiting_by_reason"
_WAITING = "vllm:num_requests_waiting"
_FAMILIES = (
    *("vllm:num_requests_running", _WAITING, _REASONS, "vllm:kv_cache_usage_perc", "vllm:num_preemptions"),
    *("vllm:admission_rejections", "vllm:request_success", "vllm:prompt_tokens", "vllm:generation_tokens"),
    *("vllm:prefix_cache_queries", "vllm:prefix_cache_hits", "vllm:engine_sleep_state"),
    *(_FIRST_TOKEN, _BETWEEN, _RESIDENT, _QUEUED, _PREFILLING, _DECODING),
)


class HttpMeter:
    """See `ports.Meter`. `has_iap`: tunnels are possible. /metrics requires no API key: catalog/api_paths.py."""

    def __init__(self, *, has_iap: bool, timeout: float = 5.0) -> None:
        self._has_iap = has_iap
        self._timeout = timeout

    def figures(self, deployment: Deployment, slice_: Slice) -> tuple[str, EngineFigures | Unknown]:
        failures: list[str] = []
        for route in ROUTES[deployment.health.via]:
            if route is Via.NODE or (route is Via.IAP and not self._has_iap):
                continue
            with open_route(route, slice_, project=deployment.project, port=deployment.container.port) as url:
                if url is None:
                    continue
                answer = self.at(url)
            if isinstance(answer, EngineFigures):
                return url, answer
            failures.append(f"{route}: {answer.because}")
        return "", Unknown(because="; ".join(failures) or "the machine has no address that can be reached from here")

    def at(self, url: str) -> EngineFigures | Unknown:
        try:
            return figures(VllmClient(url, timeout=self._timeout).metrics())
        except (NoAnswer, BadAnswer) as cause:
            return Unknown(because=str(cause))
        except (ValueError, LookupError, TypeError):  # the parser raises what it meets in another text
            return Unknown(because="/metrics is not in the Prometheus text format")


def figures(text: str) -> EngineFigures:
    """Return the figures of all engines and models in one text, or raise ValueError if it is not Prometheus text."""
    if not any(line.startswith(("# TYPE ", *_FAMILIES)) for line in text.splitlines()):
        raise ValueError("not Prometheus text")
    lines = "".join(f"{line}\n" for line in text.splitlines() if line.removeprefix("# TYPE ").startswith(_FAMILIES))
    samples_by_name: dict[str, list[Any]] = defaultdict(list)
    for family in text_string_to_metric_families(lines):
        for sample in family.samples:
            if not isfinite(sample.value):
                continue
            samples_by_name[sample.name.removesuffix("_total")].append(sample)
    totals = {name: float(sum(s.value for s in samples)) for name, samples in samples_by_name.items()}
    awake = [s.value for s in samples_by_name["vllm:engine_sleep_state"] if s.labels.get("sleep_state") == "awake"]
    return EngineFigures(
        running=totals.get("vllm:num_requests_running"),
        waiting=_by(samples_by_name[_REASONS], "reason") or _by(samples_by_name[_WAITING], "reason"),
        kv_cache_used=max((s.value for s in samples_by_name["vllm:kv_cache_usage_perc"]), default=None),
        preemptions=totals.get("vllm:num_preemptions"),
        rejected=totals.get("vllm:admission_rejections"),
        finished=_by(samples_by_name["vllm:request_success"], "finished_reason"),
        prompt_tokens=totals.get("vllm:prompt_tokens"),
        generation_tokens=totals.get("vllm:generation_tokens"),
        prefix_queried_tokens=totals.get("vllm:prefix_cache_queries"),
        prefix_hit_tokens=totals.get("vllm:prefix_cache_hits"),
        first_token=_histogram(samples_by_name, _FIRST_TOKEN),
        between_tokens=_histogram(samples_by_name, _BETWEEN),
        queued=_spent(totals, _QUEUED),
        prefilling=_spent(totals, _PREFILLING),
        decoding=_spent(totals, _DECODING),
        process_bytes=totals.get(_RESIDENT),
        is_awake=all(awake) if awake else None,
    )


def _by(samples: Iterable[Any], label: str) -> Mapping[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for sample in samples:
        sums[sample.labels.get(label, "")] += sample.value
    return dict(sums)


def _spent(totals: Mapping[str, float], name: str) -> Spent | None:
    seconds, requests = totals.get(f"{name}_sum"), totals.get(f"{name}_count")
    return None if seconds is None or requests is None else Spent(seconds=seconds, requests=requests)


def _histogram(samples_by_name: Mapping[str, Iterable[Any]], name: str) -> Histogram | None:
    buckets: dict[float, float] = defaultdict(float)
    for sample in samples_by_name.get(f"{name}_bucket", ()):
        buckets[float(sample.labels["le"])] += sample.value
    if not buckets:
        return None
    bounds = tuple(sorted(buckets))
    total = sum(s.value for s in samples_by_name.get(f"{name}_sum", ()))
    return Histogram(bounds=bounds, counts=tuple(buckets[b] for b in bounds), sum=total)
