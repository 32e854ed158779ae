"""What an engine says in its log of the settings it runs with: name → value as written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.core.bootlog import timeline
from tpudeploy.core.bootlog.lines import lines
from tpudeploy.core.bootlog.read import last_start

# Names are those of core/attest.py. Up to 0.26 the cache's size has a line of its own, from 0.32 on it is `TPU KV …`.
_SAYS: Mapping[str, re.Pattern[str]] = {
    "version": re.compile(r"version (\d+\.\d+\.\d+\S*?)(?:,|$)|LLM engine \(v(\S+?)\)"),
    "model": re.compile(r"with config: model='([^']+)'|'model_tag': '([^']+)'"),
    "max_model_len": re.compile(r"Using max model len (\d+)"),
    "tensor_parallel_size": re.compile(r"\btensor_parallel_size=(\d+)"),
    "data_parallel_size": re.compile(r"\bdata_parallel_size=(\d+)"),
    "enable_prefix_caching": re.compile(r"\benable_prefix_caching=(True|False)"),
    "speculation": re.compile(r"\bspeculative_config=(None|SpeculativeConfig\([^)]*\))"),
    "num_blocks": re.compile(r"Init kv-cache \|.*?num_blocks=\[(\d+)"),
    "block_size": re.compile(r"regular_attn_shape=\(num_blocks, \((\d+),"),
    "kv_cache_dtype": re.compile(r"regular_attn_dtype=(\w+)"),
    "kv_cache_tokens": re.compile(r"(?:GPU|TPU) KV cache size: ([\d,]+) tokens"),
}
_MEMORY = re.compile(r"total_hbm_limit_gb=([\d.]+)GiB \| total_hbm_limit_cap_gb=([\d.]+)GiB")


def effective(text: str) -> Mapping[str, str]:
    """Of the last start in this log; what it does not say is not there."""
    start = last_start(list(lines(text)))
    told: dict[str, str] = {}
    for line in start:
        for name, says in _SAYS.items():
            found = says.search(line.text)
            if found is not None:
                told[name] = next(group for group in found.groups() if group is not None).replace(",", "")
        memory = _MEMORY.search(line.text)
        if memory is not None:
            told |= _share(*memory.groups())
    graphs = timeline.graphs(start)
    return told | ({"graphs": str(graphs)} if graphs else {})


def _share(limit: str, cap: str) -> Mapping[str, str]:
    """Utilization as the engine applied it: to two decimals, for both are written so."""
    try:
        return {"hbm_utilization": f"{float(cap) / float(limit):.2f}"}
    except (ValueError, ZeroDivisionError):
        return {}
