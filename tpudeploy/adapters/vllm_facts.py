"""What a running engine says of itself through its API, under the names that core/attest.py compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain.load import Lookups

T = TypeVar("T")
# Labels of `vllm:cache_config_info` (vLLM 0.32, v1/metrics/loggers.py).
_LABELS = {
    "block_size": "block_size",
    "num_gpu_blocks": "num_blocks",
    "cache_dtype": "kv_cache_dtype",
    "gpu_memory_utilization": "hbm_utilization",
    "enable_prefix_caching": "enable_prefix_caching",
}
# vLLM 0.32, v1/metrics/loggers.py: in tokens.
_ASKED, _HAD = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
_TOKENS = "kv_cache_size_tokens"


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


def lookups(client: VllmClient) -> Lookups | None:
    """Of the prefix cache, all ranks together, from /metrics; None where nothing is said of it."""
    text = _or_none(client.metrics)
    counted = {} if text is None else _sums(text, _ASKED, _HAD)
    if _ASKED not in counted:
        return None
    return Lookups(asked=counted[_ASKED], had=counted.get(_HAD, 0.0))


def _sums(text: str, *names: str) -> Mapping[str, float]:
    """Of these samples, over all their labels. Read line by line: /metrics is 50 KB, and this is asked at each cell."""
    sums: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition("{")[0]
        if name in names:
            with suppress(ValueError):
                sums[name] = sums.get(name, 0.0) + float(line.rpartition("} ")[2].split()[0])
    return sums


def _cache_configs(text: str) -> Iterator[Mapping[str, str]]:
    from prometheus_client.parser import text_string_to_metric_families

    try:
        for family in text_string_to_metric_families(text):
            if family.name == "vllm:cache_config_info":
                yield from (sample.labels for sample in family.samples)
    except ValueError:
        return  # whoever answers there is no vLLM


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (NoAnswer, BadAnswer):
        return None
