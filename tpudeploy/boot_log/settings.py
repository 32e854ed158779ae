"""The settings of an engine by its own log: the flags it got, the chip it runs on, and the values in effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tpudeploy.boot_log import phases
from tpudeploy.boot_log.lines import last_boot, parse_lines
from tpudeploy.boot_log.reading import LogLine
from tpudeploy.domain.budget import UTILIZATION, HbmBudget
from tpudeploy.sizing.numbers import parse_number

_GIB = 2**30
_FLAGS = re.compile(r"non-default args: (\{.*\})")
# hbm=[(8.97, 15.75)]Gb: used and limit of each chip.
_HBM = re.compile(r"hbm=\[\(([\d.]+), ([\d.]+)\)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"([\d.]+) ?([KMGT]?)i?B?$")
# Names are those of verify/settings.py. Up to 0.26 the cache's size has a line of its own, from 0.32 on the line names
# the device: `TPU KV …`, `CPU KV …`.
_PATTERNS: Mapping[str, re.Pattern[str]] = {
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
# These count all chips of a rank together (tpu_inference 0.32.0 worker/tpu_worker.py determine_available_memory).
_MEMORY = re.compile(r"total_hbm_(limit|limit_cap|used|avail)_gb=([\d.]+)GiB")
# huggingface_hub file_download.py: repo_folder_name.
_SNAPSHOT = re.compile(r"/models--([^/]+)/snapshots/[^/]+/?$")
_RANK = re.compile(r"EngineCore_DP\d+")
# By jax._src.compiler; at its default level it logs neither, and `cache_hits` is absent (UNVERIFIED on a TPU).
_HIT = re.compile(r"Persistent compilation cache hit for", re.IGNORECASE)
_MISS = re.compile(r"Persistent compilation cache miss for", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """The facts for remedies with numbers: `flags` as `vllm serve` took them, `hbm_bytes` of one chip if it is logged.

    `budget` is the prediction of the profile, where there is a profile that can be sized.
    """

    flags: Mapping[str, Any]
    hbm_bytes: float | None = None
    budget: HbmBudget | None = None

    @property
    def utilization(self) -> float:
        value = self.flags.get("gpu_memory_utilization")
        if isinstance(value, int | float) and 0 < value <= 1:
            return float(value)
        return UTILIZATION if self.budget is None else self.budget.engine.utilization

    @property
    def present_utilization(self) -> str:
        """What the utilization is now, in brackets: by the log or the profile, as the default, or "" if unknown."""
        if "gpu_memory_utilization" in self.flags or self.budget is not None:
            return f" (now {self.utilization:.2f})"
        # A log that shows the flags without this one shows that the default counts.
        return f" (the default is {self.utilization:.2f})" if self.flags else ""

    @property
    def chip_bytes(self) -> float | None:
        return self.hbm_bytes if self.budget is None else self.budget.hbm_bytes_per_chip

    @property
    def is_speculative(self) -> bool:
        """Whether the log or the profile shows that speculative decoding is on."""
        is_planned = self.budget is not None and self.budget.engine.speculation is not None
        return is_planned or bool(self.flags.get("speculative_config"))

    def flag(self, name: str) -> int | None:
        """Return a positive integer by the log or else by the profile, or None."""
        value = self.flags.get(name)
        if value is None and self.budget is not None:
            value = getattr(self.budget.engine, name, None)
        return value if isinstance(value, int) and value > 0 else None


def read_facts(lines: Iterable[LogLine], budget: HbmBudget | None) -> EngineFacts:
    """Return the last value of each fact in these lines."""
    flags: Mapping[str, Any] = {}
    hbm: float | None = None
    for line in lines:
        match = _FLAGS.search(line.text)
        if match is not None:
            flags = _literal(match[1])
        memory = _HBM.search(line.text)
        if memory is not None:
            limit = parse_number(memory[2])
            hbm = limit * _GIB if limit else hbm
    return EngineFacts(flags=flags, hbm_bytes=hbm, budget=budget)


def parse_size(text: str | None) -> float | None:
    """Return the bytes of `16.23G`, `384.11M` or `1.5 GiB`, as XLA writes them."""
    match = _SIZE.fullmatch((text or "").strip())
    amount = None if match is None else parse_number(match[1])
    return None if match is None or amount is None else amount * _UNITS[match[2]]


def _literal(text: str) -> Mapping[str, Any]:
    """Return a Python literal, or nothing: objects among the values are written as `<Thing ...>`."""
    try:
        tree = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def effective_settings(text: str) -> Mapping[str, str]:
    """Return the settings of the last start in this log, as written; those that it does not mention are absent."""
    start = last_boot(list(parse_lines(text)))
    settings: dict[str, str] = {}
    for line in start:
        for name, pattern in _PATTERNS.items():
            match = pattern.search(line.text)
            if match is not None:
                settings[name] = next(group for group in match.groups() if group is not None).replace(",", "")
        settings |= _memory_settings(dict(_MEMORY.findall(line.text)))
    if "model" in settings:
        # With HF_HUB_OFFLINE the log calls a model by its folder in the hub's cache.
        snapshot = _SNAPSHOT.search(settings["model"])
        settings["model"] = settings["model"] if snapshot is None else snapshot[1].replace("--", "/")
    ranks = {line.process for line in start if _RANK.fullmatch(line.process)}
    if ranks:  # each rank of a dense model logs that it is alone (vLLM v1/engine/core.py)
        settings.pop("data_parallel_size", None)
    if any(phases.READY.search(line.text) for line in start):  # a log that still grows has not all of them
        settings |= _counts(start, ranks)
    return {**settings, **_cache_hits(start)}


def _counts(start: Sequence[LogLine], ranks: set[str]) -> Mapping[str, str]:
    """Return the number of ranks, if there are several, and of graphs of one rank."""
    graphs = phases.count_graphs([line for line in start if not ranks or line.process == min(ranks)])
    counts = {"data_parallel_size": len(ranks), "graphs": graphs}
    return {name: str(count) for name, count in counts.items() if count}


def _memory_settings(sizes: Mapping[str, str]) -> Mapping[str, str]:
    """Return the utilization as applied, to two decimals as the log has its parts, and the bytes of each part."""
    gib = {part: parse_number(value) for part, value in sizes.items()}
    limit, cap = gib.get("limit"), gib.get("limit_cap")
    settings = {"hbm_utilization": f"{cap / limit:.2f}"} if limit and cap else {}
    parts = {"hbm_bytes": limit, "weights_bytes": gib.get("used"), "kv_cache_bytes": gib.get("avail")}
    return settings | {name: str(round(value * _GIB)) for name, value in parts.items() if value}


def _cache_hits(start: Sequence[LogLine]) -> Mapping[str, str]:
    """Return how many of the programs that were looked up in the compile cache were there."""
    hits = sum(_HIT.search(line.text) is not None for line in start)
    misses = sum(_MISS.search(line.text) is not None for line in start)
    return {"cache_hits": f"{hits} of {hits + misses}"} if hits + misses else {}
