"""/metrics of the stand-in: what really passed through it is counted; what has no counterpart stays zero."""

from __future__ import annotations

import resource
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tpudeploy.emulator.machine.vllm.completions import EmulatedCompletion
from tpudeploy.emulator.machine.vllm.engine import EmulatedEngine

RSS_UNIT = 1 if sys.platform == "darwin" else 1024


# The metrics of vLLM 0.32 (V1 engine): names, labels beside `engine` and `model_name`, buckets. Not their values.
# name without `_total` → a label of its own and the values it takes
_COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "estimated_flops_per_gpu": ("", ()),
    "estimated_read_bytes_per_gpu": ("", ()),
    "estimated_write_bytes_per_gpu": ("", ()),
    "prefix_cache_queries": ("", ()),
    "prefix_cache_hits": ("", ()),
    "external_prefix_cache_queries": ("", ()),
    "external_prefix_cache_hits": ("", ()),
    "mm_cache_queries": ("", ()),
    "mm_cache_hits": ("", ()),
    "num_preemptions": ("", ()),
    "prompt_tokens": ("", ()),
    "prompt_tokens_by_source": ("source", ("local_compute", "local_cache_hit", "external_kv_transfer")),
    "prompt_tokens_cached": ("", ()),
    "prompt_tokens_cached_by_source": ("source", ("device", "host", "p2p", "disk", "external_unspecified")),
    "generation_tokens": ("", ()),
    "request_success": ("finished_reason", ("stop", "length", "abort", "error", "repetition")),
    "admission_rejections": ("reason", ("max_num_queued_reqs", "max_num_queued_tokens")),
}
_GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "num_requests_running": ("", ()),
    "num_requests_waiting": ("", ()),
    "num_requests_waiting_by_reason": ("reason", ("capacity", "deferred")),
    "engine_sleep_state": ("sleep_state", ("awake", "weights_offloaded", "discard_all")),
    "kv_cache_usage_perc": ("", ()),
}
_WITHOUT_ENGINE = frozenset(("admission_rejections",))

_REQUEST = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_TOKEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_LENGTHS: tuple[float, ...] = ()  # 1, 2, 5, 10, … up to max_model_len
_HISTOGRAMS: Mapping[str, tuple[float, ...]] = {
    "request_prompt_tokens": _LENGTHS,
    "request_generation_tokens": _LENGTHS,
    "iteration_tokens_total": (1.0, *(float(2**power) for power in range(3, 15))),
    "request_max_num_generation_tokens": _LENGTHS,
    "request_params_n": (1.0, 2.0, 5.0, 10.0, 20.0),
    "request_params_max_tokens": _LENGTHS,
    "time_to_first_token_seconds": _FIRST_TOKEN,
    "inter_token_latency_seconds": _TOKEN,
    "request_time_per_output_token_seconds": _TOKEN,
    "e2e_request_latency_seconds": _REQUEST,
    "request_queue_time_seconds": _REQUEST,
    "request_inference_time_seconds": _REQUEST,
    "request_prefill_time_seconds": _REQUEST,
    "request_decode_time_seconds": _REQUEST,
    "request_num_preemptions": (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0),
    "request_prefill_kv_computed_tokens": _LENGTHS,
}


def _length_bounds(most: int) -> tuple[float, ...]:
    steps = (float(factor * 10**power) for power in range(len(str(most))) for factor in (1, 2, 5))
    return tuple(step for step in steps if step <= most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One answered request. Seconds are real ones."""

    answer: EmulatedCompletion
    first: float
    whole: float


class VllmHistogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def with_more(self, samples: Mapping[float, int]) -> VllmHistogram:
        """Return a copy to which these values were added, each this number of times."""
        copy = VllmHistogram(self.bounds)
        copy.counts, copy.sum = [*self.counts], self.sum
        for value, times in samples.items():
            copy.add(value, times=times)
        return copy

    def lines(self, name: str, labels: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*map(float, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {float(total)}'
        yield f"{name}_count{{{labels}}} {float(total)}"
        yield f"{name}_sum{{{labels}}} {self.sum}"


class VllmMetrics:
    def __init__(self, engine: EmulatedEngine, *, served_seconds: Callable[[], float]) -> None:
        self._engine = engine
        self._served_seconds = served_seconds
        self._lock = threading.Lock()
        self._created = time.time()
        self.running_now = 0
        self._counters: Counter[tuple[str, str]] = Counter()
        self._cached: OrderedDict[int, None] = OrderedDict()
        lengths = _length_bounds(engine.max_model_len)
        self._histograms = {name: VllmHistogram(bounds or lengths) for name, bounds in _HISTOGRAMS.items()}

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._lock:
            self.running_now += 1
        try:
            yield
        finally:
            with self._lock:
                self.running_now -= 1

    def count(self, served: Served) -> None:
        prompt = served.answer.prompt
        prompt_tokens = sum(prompt.sizes)
        with self._lock:
            cached_tokens = self._look_up_prefixes(prompt.prefixes) if self._engine.prefix_caching else 0
            self._counters["prompt_tokens", ""] += prompt_tokens
            self._counters["prompt_tokens_by_source", "local_compute"] += prompt_tokens - cached_tokens
            self._counters["prompt_tokens_by_source", "local_cache_hit"] += cached_tokens
            self._counters["prefix_cache_queries", ""] += prompt_tokens if self._engine.prefix_caching else 0
            self._counters["prefix_cache_hits", ""] += cached_tokens
            for choice in served.answer.choices:
                self._counters["generation_tokens", ""] += len(choice.words)
                self._counters["request_success", choice.reason] += 1
            self._observe(served, prompt_tokens, sum(len(choice.words) for choice in served.answer.choices))

    def count_loop(self, requests: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Count the requests of a cell of load, each with its own prompt; their latencies are the client's alone."""
        with self._lock:
            tokens = requests * prompt_tokens
            self._counters["prompt_tokens", ""] += tokens
            self._counters["prompt_tokens_by_source", "local_compute"] += tokens
            self._counters["prefix_cache_queries", ""] += tokens if self._engine.prefix_caching else 0
            self._counters["generation_tokens", ""] += requests * completion_tokens
            self._counters["request_success", "length"] += requests

    def _look_up_prefixes(self, prefixes: Sequence[int]) -> int:
        """Return the number of cached tokens, and mark each block as the latest used; the longest unused make room."""
        cache, cached = self._engine.cache, self._cached
        cached_tokens = sum(1 for prefix in prefixes if prefix in cached)
        for prefix in prefixes:
            cached[prefix] = None
            cached.move_to_end(prefix)
        while len(cached) > cache.blocks:
            cached.popitem(last=False)
        return cached_tokens * cache.block_size

    def _observe(self, served: Served, prompt_tokens: int, completion_tokens: int) -> None:
        rest = served.whole - served.first
        gaps = max(completion_tokens - 1, 1)
        values: Mapping[str, float] = {
            "request_prompt_tokens": prompt_tokens,
            "request_generation_tokens": completion_tokens,
            "request_max_num_generation_tokens": completion_tokens,
            "request_params_n": served.answer.prompt.copies,
            "request_params_max_tokens": max(served.answer.prompt.limits),
            "time_to_first_token_seconds": served.first,
            "request_time_per_output_token_seconds": rest / gaps,
            "e2e_request_latency_seconds": served.whole,
            "request_queue_time_seconds": 0.0,
            "request_inference_time_seconds": served.whole,
            "request_prefill_time_seconds": served.first,
            "request_decode_time_seconds": rest,
            "request_num_preemptions": 0,
            "request_prefill_kv_computed_tokens": prompt_tokens,
        }
        for name, value in values.items():
            self._histograms[name].add(value)
        self._histograms["inter_token_latency_seconds"].add(rest / gaps, times=completion_tokens - 1)
        self._histograms["iteration_tokens_total"].add(prompt_tokens + 1)
        self._histograms["iteration_tokens_total"].add(1, times=completion_tokens - 1)

    def text(self) -> str:
        with self._lock:
            lines = [*_process(), *(self._engine_lines() if self._engine.keeps_stats else ())]
        return "\n".join(lines) + "\n"

    def _engine_lines(self) -> Iterator[str]:
        gauges = {("num_requests_running", ""): self.running_now, ("engine_sleep_state", "awake"): 1}
        for name, (label, values) in _COUNTERS.items():
            labels = {value: self._labels(name, label, value) for value in values or ("",)}
            yield f"# TYPE vllm:{name}_total counter"
            for value, own in labels.items():
                yield f"vllm:{name}_total{{{own}}} {float(self._counters[name, value] + self._load(name, value))}"
            yield f"# TYPE vllm:{name}_created gauge"
            yield from (f"vllm:{name}_created{{{own}}} {self._created}" for own in labels.values())
        for name, (label, values) in _GAUGES.items():
            yield f"# TYPE vllm:{name} gauge"
            for value in values or ("",):
                now = float(gauges.get((name, value), 0) + self._load(name, value))
                yield f"vllm:{name}{{{self._labels(name, label, value)}}} {now}"
        for name, histogram in self._histograms.items():
            yield f"# TYPE vllm:{name} histogram"
            yield from histogram.with_more(self._samples(name)).lines(f"vllm:{name}", self._labels(name, "", ""))
        yield "# TYPE vllm:cache_config_info gauge"
        yield cache_config(self._engine)

    def _load(self, name: str, value: str) -> float:
        """Return what the scenario adds."""
        key = f"{name}.{value}" if value else name
        grown = self._engine.growth.get(key, 0.0) * self._served_seconds() if key in self._engine.growth else 0.0
        return self._engine.load.get(key, 0.0) + int(grown)

    def _samples(self, name: str) -> Mapping[float, int]:
        """Return the samples that the scenario adds to a histogram."""
        keys = (key.partition("=") for key in self._engine.growth)
        return {
            float(value): int(self._engine.growth[f"{name}={value}"] * self._served_seconds())
            for histogram, _, value in keys
            if value and histogram == name
        }

    def _labels(self, name: str, label: str, value: str) -> str:
        pairs = {"model_name": self._engine.served_names[0]}
        if name not in _WITHOUT_ENGINE:
            pairs["engine"] = "0"
        if label:
            pairs[label] = value
        return _format_labels(pairs)


def cache_config(engine: EmulatedEngine) -> str:
    """Return the line about the KV cache; one that is not measured has no figures."""
    cache = None if engine.cache.origin == "unmeasured" else engine.cache
    labels = _format_labels(
        {
            "block_size": None if cache is None and not engine.user_block_size else engine.cache.block_size,
            "cache_dtype": engine.cache_dtype,
            "enable_prefix_caching": engine.prefix_caching,
            "engine": "0",
            "gpu_memory_utilization": engine.gpu_memory_utilization,
            "kv_cache_max_concurrency": None if cache is None else cache.tokens / engine.max_model_len,
            "kv_cache_size_tokens": None if cache is None else cache.tokens,
            "num_gpu_blocks": None if cache is None else cache.blocks,
            "num_gpu_blocks_override": None,
            "prefix_caching_hash_algo": "sha256",
            "user_specified_block_size": engine.user_block_size,
        }
    )
    return f"vllm:cache_config_info{{{labels}}} 1.0"


def _format_labels(pairs: Mapping[str, object]) -> str:
    escaped = {
        key: str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in pairs.items()
    }
    return ",".join(f'{key}="{escaped[key]}"' for key in sorted(escaped))


@lru_cache(maxsize=1)
def _open_files(second: int) -> int:
    """Return how many files this process has open, counted once a second: thousands of simulated nodes share it."""
    del second
    return sum(1 for _ in Path("/dev/fd").iterdir())


def _process() -> Iterator[str]:
    """Yield the metrics of the stand-in's own process."""
    figures = {
        "process_resident_memory_bytes gauge": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT),
        "process_cpu_seconds_total counter": time.process_time(),
        "process_open_fds gauge": float(_open_files(int(time.monotonic()))),
    }
    for name, value in figures.items():
        yield f"# TYPE {name}"
        yield f"{name.split()[0]} {value}"
