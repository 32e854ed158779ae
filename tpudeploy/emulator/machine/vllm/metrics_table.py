"""The metrics of vLLM 0.32 (V1 engine): names, labels beside `engine` and `model_name`, buckets. Not their values."""

from __future__ import annotations

from collections.abc import Mapping

# name without `_total` → a label of its own and the values it takes
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
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
GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "num_requests_running": ("", ()),
    "num_requests_waiting": ("", ()),
    "num_requests_waiting_by_reason": ("reason", ("capacity", "deferred")),
    "engine_sleep_state": ("sleep_state", ("awake", "weights_offloaded", "discard_all")),
    "kv_cache_usage_perc": ("", ()),
}
WITHOUT_ENGINE = frozenset(("admission_rejections",))

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
LENGTHS: tuple[float, ...] = ()  # 1, 2, 5, 10, … up to max_model_len
HISTOGRAMS: Mapping[str, tuple[float, ...]] = {
    "request_prompt_tokens": LENGTHS,
    "request_generation_tokens": LENGTHS,
    "iteration_tokens_total": (1.0, *(float(2**power) for power in range(3, 15))),
    "request_max_num_generation_tokens": LENGTHS,
    "request_params_n": (1.0, 2.0, 5.0, 10.0, 20.0),
    "request_params_max_tokens": LENGTHS,
    "time_to_first_token_seconds": _FIRST_TOKEN,
    "inter_token_latency_seconds": _TOKEN,
    "request_time_per_output_token_seconds": _TOKEN,
    "e2e_request_latency_seconds": _REQUEST,
    "request_queue_time_seconds": _REQUEST,
    "request_inference_time_seconds": _REQUEST,
    "request_prefill_time_seconds": _REQUEST,
    "request_decode_time_seconds": _REQUEST,
    "request_num_preemptions": (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0),
    "request_prefill_kv_computed_tokens": LENGTHS,
}


def lengths(most: int) -> tuple[float, ...]:
    steps = (float(factor * 10**power) for power in range(len(str(most))) for factor in (1, 2, 5))
    return tuple(step for step in steps if step <= most)
