"""The facts that a running engine reports through its API, under the names that verify/settings.py compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from math import isfinite
from typing import TypeVar

from prometheus_client.parser import text_string_to_metric_families

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.domain.metrics import Counters
from tpudeploy.domain.slices import ServerLoad
from tpudeploy.domain.verify import EngineReport

T = TypeVar("T")
# Labels of `vllm:cache_config_info` (vLLM 0.32, v1/metrics/loggers.py).
_CACHE = "vllm:cache_config_info"
_LABELS = {
    "block_size": "block_size",
    "num_gpu_blocks": "num_blocks",
    "cache_dtype": "kv_cache_dtype",
    "gpu_memory_utilization": "hbm_utilization",
    "enable_prefix_caching": "enable_prefix_caching",
}
_RESIDENT = "process_resident_memory_bytes"
# vLLM 0.32, v1/metrics/loggers.py: in tokens.
_LOOKED_UP, _HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"
_ANSWERED = "vllm:request_success_total"  # by the reason for its end
_GENERATED = "vllm:generation_tokens_total"
_TOKENS = "kv_cache_size_tokens"
_COUNT = re.compile(r"[0-9]{1,15}")
_RUNNING, _WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"
_KV_CACHE = "vllm:kv_cache_usage_perc"  # 0 to 1, despite its name


def facts(client: VllmClient) -> EngineReport:
    """From /v1/models, /version and /metrics."""
    silent: dict[str, str] = {}
    return EngineReport(api=_api(client, silent), cache=_cache(client, silent), silent=silent)


def _api(client: VllmClient, silent: dict[str, str]) -> Mapping[str, str]:
    values: dict[str, str] = {}
    models = _try_read(client.described, "api", silent) or ()
    if models:
        values["served_model"] = "\n".join(str(model.get("id", "")) for model in models)
        root, length = models[0].get("root"), models[0].get("max_model_len")
        values |= {"model": str(root)} if root else {}
        values |= {"max_model_len": str(length)} if length else {}
    version = _try_read(client.version, "version", silent)
    return values | ({"version": version} if version else {})


def _cache(client: VllmClient, silent: dict[str, str]) -> Mapping[str, str]:
    """Return the labels of the first rank, and the tokens of all ranks."""
    text = _try_read(client.metrics, "metrics", silent)
    if text is None:
        return {}
    resident = re.search(rf"^{_RESIDENT} (\S+)$", text, re.MULTILINE)
    process = {} if resident is None else {"process_bytes": resident[1]}
    ranks = list(_cache_configs(text))
    if not ranks:
        silent["metrics"] = f"they have no {_CACHE}"
        return process
    values = process | {
        name: ranks[0][label] for label, name in _LABELS.items() if ranks[0].get(label, "None") != "None"
    }
    tokens = [rank.get(_TOKENS, "") for rank in ranks]
    if all(_COUNT.fullmatch(each) for each in tokens):
        values["kv_cache_tokens"] = str(sum(map(int, tokens)))
    if len(ranks) > 1:  # one may hold several ranks, where they are not processes of their own
        values["data_parallel_size"] = str(len(ranks))
    return values


def vocabulary(client: VllmClient, model: str, sizes: Iterable[int]) -> int | None:
    """Return the first of `sizes`, largest first, whose last token id the engine takes; None where it refuses none.

    No path of vLLM's API says how many tokens a model has, but a prompt with an id beyond them is refused at once
    (HTTP 400, `Token id 29999 is out of vocabulary`). Another model may be served under the same name.
    """
    is_smaller = False
    for size in sizes:
        try:
            client.takes_tokens(model, [size - 1])
        except BadAnswer as answer:
            if answer.status == HTTPStatus.BAD_REQUEST and "vocabulary" in answer.message:
                is_smaller = True
                continue
        except NoAnswer:
            pass  # A refusal comes at once. A slow answer is none, and a cell shows whatever else is wrong.
        return size if is_smaller else None
    return None


def load(client: VllmClient) -> ServerLoad | None:
    """Return the load of all ranks, from /metrics, or None without such metrics."""
    text = _try_read(client.metrics, "metrics", {})
    samples = {} if text is None else _samples(text, _RUNNING, _WAITING, _KV_CACHE)
    if not samples:
        return None
    return ServerLoad(
        running=int(sum(samples[_RUNNING])) if _RUNNING in samples else None,
        waiting=int(sum(samples[_WAITING])) if _WAITING in samples else None,
        kv_cache_used=max(samples.get(_KV_CACHE, ()), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounts:
    """How many requests of a server ended since it started, and how many it has; and the tokens that it generated.

    0 for each that the server does not report.
    """

    ended: float = 0.0
    running: float = 0.0
    tokens: float = 0.0


def request_counts(client: VllmClient) -> RequestCounts:
    """Return the counts of all ranks, from /metrics."""
    text = _try_read(client.metrics, "metrics", {})
    samples = {} if text is None else _samples(text, _ANSWERED, _RUNNING, _WAITING, _GENERATED)
    ended, running, waiting, tokens = (sum(samples.get(n, ())) for n in (_ANSWERED, _RUNNING, _WAITING, _GENERATED))
    return RequestCounts(ended=ended, running=running + waiting, tokens=tokens)


def counters(client: VllmClient) -> Counters:
    """Return the counters of all ranks, from /metrics, without those that it does not have."""
    text = _try_read(client.metrics, "metrics", {})
    samples = {} if text is None else _samples(text, _LOOKED_UP, _HITS, _ANSWERED)
    looked_up_tokens, cached_tokens, answers = (
        sum(samples[n]) if n in samples else None for n in (_LOOKED_UP, _HITS, _ANSWERED)
    )
    return Counters(looked_up_tokens=looked_up_tokens, cached_tokens=cached_tokens, answers=answers)


def _samples(text: str, *names: str) -> Mapping[str, list[float]]:
    """Return the values of these samples, one for each set of labels.

    /metrics is scanned line by line, because it is 50 KB and read at each cell.
    """
    values: dict[str, list[float]] = {}
    for line in text.splitlines():
        name = line.partition("{")[0]
        if name in names:
            with suppress(ValueError, IndexError):
                value = float(line.rpartition("} ")[2].split()[0])
                if isfinite(value):
                    values.setdefault(name, []).append(value)
    return values


def _cache_configs(text: str) -> Iterator[Mapping[str, str]]:
    """Yield the labels of each rank. Only these lines are parsed, of hundreds."""
    lines = re.findall(rf"^{_CACHE}.*$", text, re.MULTILINE)
    try:
        for family in text_string_to_metric_families("\n".join(lines)):
            yield from (sample.labels for sample in family.samples)
    except (ValueError, LookupError, TypeError):
        return  # the server is not vLLM, and the parser raises what it meets in another text


def _try_read(read: Callable[[], T], source: str, silent: dict[str, str]) -> T | None:
    try:
        return read()
    except (NoAnswer, BadAnswer) as why:
        silent[source] = str(why)
        return None
