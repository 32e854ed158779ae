"""What a running engine says of itself through its API, under the names that core/attest.py compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

T = TypeVar("T")
# Labels of `vllm:cache_config_info` (vLLM 0.32, v1/metrics/loggers.py).
_LABELS = {
    "block_size": "block_size",
    "num_gpu_blocks": "num_blocks",
    "cache_dtype": "kv_cache_dtype",
    "gpu_memory_utilization": "hbm_utilization",
    "enable_prefix_caching": "enable_prefix_caching",
}
_TOKENS = "kv_cache_size_tokens"
_REQUESTS = ("vllm:num_requests_running", "vllm:num_requests_waiting")


def api(client: VllmClient) -> Mapping[str, str]:
    """From /v1/models and /version; nothing of what does not answer."""
    told: dict[str, str] = {}
    models = _or_none(client.described) or ()
    if models:
        told["served_model"] = "\n".join(str(model.get("id", "")) for model in models)
        length = models[0].get("max_model_len")
        told |= {"max_model_len": str(length)} if length else {}
    version = _or_none(client.version)
    return told | ({"version": version} if version else {})


def cache(client: VllmClient) -> Mapping[str, str]:
    """From /metrics: the first rank's labels, and the tokens of all."""
    text = _or_none(client.metrics)
    ranks = [] if text is None else list(_cache_configs(text))
    if not ranks:
        return {}
    told = {name: ranks[0][label] for label, name in _LABELS.items() if ranks[0].get(label, "None") != "None"}
    tokens = [rank.get(_TOKENS, "") for rank in ranks]
    if all(each.isdecimal() for each in tokens):
        told["kv_cache_tokens"] = str(sum(map(int, tokens)))
    return told


def running(client: VllmClient) -> int | None:
    """The requests that it works at or has waiting, of all ranks; None where it does not tell."""
    text = _or_none(client.metrics)
    told = [] if text is None else [sample.value for name in _REQUESTS for sample in _samples(text, name)]
    return int(sum(told)) if told else None


def _cache_configs(text: str) -> Iterator[Mapping[str, str]]:
    return (sample.labels for sample in _samples(text, "vllm:cache_config_info"))


def _samples(text: str, name: str) -> Iterator[Sample]:
    from prometheus_client.parser import text_string_to_metric_families

    try:
        for family in text_string_to_metric_families(text):
            if family.name == name:
                yield from family.samples
    except ValueError:
        return  # whoever answers there is no vLLM


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (NoAnswer, BadAnswer):
        return None
