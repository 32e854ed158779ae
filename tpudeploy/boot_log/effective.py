"""What an engine says in its log of the settings it runs with: name → value as written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tpudeploy.boot_log import timeline
from tpudeploy.boot_log.lines import lines
from tpudeploy.boot_log.read import last_start
from tpudeploy.boot_log.said import number
from tpudeploy.domain.bootlog import Line

# Names are those of verify/attest.py. Up to 0.26 the cache's size has a line of its own. From 0.32 on the line names
# the device: `TPU KV …`, `CPU KV …`.
_SAYS: Mapping[str, re.Pattern[str]] = {
    "version": re.compile(r"version (\d+\.\d+\.\d+\S*?)(?:,|$)|LLM engine \(v(\S+?)\)"),
    "model": re.compile(r"with config: model='([^']+)'|'model_tag': '([^']+)'"),
    "max_model_len": re.compile(r"Using max model len (\d+)"),
    "tensor_parallel_size": re.compile(r"\btensor_parallel_size=(\d+)"),
    "data_parallel_size": re.compile(r"\bdata_parallel_size=(\d+)"),
    "enable_prefix_caching": re.compile(r"\benable_prefix_caching=(True|False)"),
    "speculation": re.compile(r"\bspeculative_config=(None|SpeculativeConfig\([^)]*\))"),
    "num_blocks": re.compile(r"Init kv-cache \|.*?num_blocks=\[(\d+)"),
    "used_gib": re.compile(r"Init kv-cache \|.*?hbm=\[\(([\d.]+), "),
    "limit_gib": re.compile(r"Init kv-cache \|.*?hbm=\[\([\d.]+, ([\d.]+)\)"),
    "dtype": re.compile(r"with config: .*?\bdtype=(?:torch\.)?(\w+)"),
    "quantization": re.compile(r"with config: .*?\bquantization=(?!None\b)(\w+)"),
    "block_size": re.compile(r"regular_attn_shape=\(num_blocks, \((\d+),"),
    "kv_cache_dtype": re.compile(r"regular_attn_dtype=(\w+)"),
    "compile_seconds": re.compile(r"^init engine .* took .*\(compilation: ([\d.]+) s\)"),
    "kv_cache_tokens": re.compile(r"\b[A-Z]+ KV cache size: ([\d,]+) tokens"),
}
# Of all chips of a rank together (tpu_inference 0.32.0 worker/tpu_worker.py:512-570).
_MEMORY = re.compile(r"total_hbm_(limit|limit_cap|used|avail)_gb=([\d.]+)GiB")
_GIB = 2**30
# huggingface_hub file_download.py: repo_folder_name.
_SNAPSHOT = re.compile(r"/models--([^/]+)/snapshots/[^/]+/?$")
_RANK = re.compile(r"EngineCore_DP\d+")
# By jax._src.compiler; at its default level it does not say so, then `cache_hits` is not told (UNVERIFIED on a TPU).
_HIT = re.compile(r"Persistent compilation cache hit for", re.IGNORECASE)
_MISS = re.compile(r"Persistent compilation cache miss for", re.IGNORECASE)


def effective(text: str) -> Mapping[str, str]:
    """Of the last start in this log; what it does not say is not there."""
    start = last_start(list(lines(text)))
    told: dict[str, str] = {}
    for line in start:
        for name, says in _SAYS.items():
            found = says.search(line.text)
            if found is not None:
                told[name] = next(group for group in found.groups() if group is not None).replace(",", "")
        told |= _memory(dict(_MEMORY.findall(line.text)))
    if "model" in told:
        told["model"] = _model_id(told["model"])
    ranks = {line.process for line in start if _RANK.fullmatch(line.process)}
    graphs = timeline.graphs([line for line in start if not ranks or line.process == min(ranks)])
    is_whole = any(timeline.READY.search(line.text) for line in start)  # a log that still grows has not all of them
    if ranks:  # each of a dense model's is told that it is alone (vLLM v1/engine/core.py)
        told.pop("data_parallel_size", None)
        told |= {"data_parallel_size": str(len(ranks))} if is_whole else {}
    return {**told, **_hits(start)} | ({"graphs": str(graphs)} if graphs and is_whole else {})


def _model_id(model: str) -> str:
    """Return the name of a model that the log calls by its folder in the hub's cache: so it is with HF_HUB_OFFLINE."""
    found = _SNAPSHOT.search(model)
    return model if found is None else found[1].replace("--", "/")


def _memory(written: Mapping[str, str]) -> Mapping[str, str]:
    """Utilization as the engine applied it, to two decimals, for both are written so; and the bytes of each part."""
    gib = {part: number(value) for part, value in written.items()}
    limit, cap = gib.get("limit"), gib.get("limit_cap")
    told = {"hbm_utilization": f"{cap / limit:.2f}"} if limit and cap else {}
    parts = {"hbm_bytes": limit, "weights_bytes": gib.get("used"), "kv_cache_bytes": gib.get("avail")}
    return told | {name: str(round(value * _GIB)) for name, value in parts.items() if value}


def _hits(start: Sequence[Line]) -> Mapping[str, str]:
    """Of the programs that were looked up in the compile cache, how many were there."""
    hits = sum(_HIT.search(line.text) is not None for line in start)
    misses = sum(_MISS.search(line.text) is not None for line in start)
    return {"cache_hits": f"{hits} of {hits + misses}"} if hits + misses else {}
