"""The engine of the stand-in: its settings by its arguments, its environment and a measured boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tpudeploy.catalog import api_paths, families
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.domain.model import NotCovered
from tpudeploy.emulator.digests import release_of
from tpudeploy.emulator.machine.vllm.arguments import Arguments, read_size
from tpudeploy.emulator.machine.vllm.graphs import Graph, graphs_of
from tpudeploy.emulator.machine.vllm.performance import Performance, performance_of
from tpudeploy.emulator.machine.vllm.pooling import task_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """The KV cache of a boot. `origin`: measured, scenario, or unmeasured, for which no figures are reported."""

    block_size: int
    blocks: int
    memory: str
    origin: str

    @property
    def tokens(self) -> int:
        return self.blocks * self.block_size


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBoot:
    """Matches a server whose arguments, with vLLM's defaults, say all of `flags`."""

    model: str
    accelerator_type: str
    max_model_len: int
    flags: Mapping[str, str]
    cache: KvCache


DEFAULTS = {  # the block size has none: it follows from the lengths
    "gpu-memory-utilization": "0.92",
    "kv-cache-dtype": "auto",
    "max-num-seqs": "256",
    "tensor-parallel-size": "1",
}
UNMEASURED = ("additional-config", "data-parallel-size", "quantization", "speculative-config")  # each takes memory
UNMEASURED_CACHE = KvCache(block_size=64, blocks=8192, memory="", origin="unmeasured")
# Boot logs of a v6e-1 (32,768 tokens, 17,996 blocks) and of a v6e-4 (16,384 tokens, TP 4, 18,523 blocks). Nothing else
# has figures, and the log says so; on purpose, the product's arithmetic is not used.
MEASURED = (
    MeasuredBoot(
        model="google/gemma-4-E2B-it",
        accelerator_type="v6e-1",
        max_model_len=32_768,
        flags={
            "tensor-parallel-size": "1",
            "gpu-memory-utilization": "0.92",
            "kv-cache-dtype": "auto",
            "max-num-seqs": "256",
            "block-size": "64",
        },
        cache=KvCache(
            block_size=64,
            blocks=17_996,
            memory="total_hbm_limit_gb=31.24GiB | total_hbm_limit_cap_gb=28.74GiB | "
            "total_hbm_used_gb=8.97GiB | total_hbm_avail_gb=19.77GiB",
            origin="measured",
        ),
    ),
    MeasuredBoot(
        model="google/gemma-4-E2B-it",
        accelerator_type="v6e-4",
        max_model_len=16_384,
        flags={
            "tensor-parallel-size": "4",
            "gpu-memory-utilization": "0.4",
            "kv-cache-dtype": "fp8",
            "max-num-seqs": "256",
            "block-size": "32",
        },
        cache=KvCache(block_size=32, blocks=18_523, memory="", origin="measured"),
    ),
)


def cache_of(arguments: Arguments, task: Mapping[str, Any], max_model_len: int) -> KvCache:
    """Return the cache by the scenario, else of a measured boot, else one without figures."""
    measured = next((row.cache for row in MEASURED if _matches(row, arguments, task, max_model_len)), UNMEASURED_CACHE)
    block_size = int(arguments.text("block-size") or measured.block_size)
    blocks = int(arguments.text("num-gpu-blocks-override") or measured.blocks)
    if task["kv_blocks"] is None and task["block_size"] is None:
        same = (block_size, blocks) == (measured.block_size, measured.blocks)
        return measured if same else KvCache(block_size=block_size, blocks=blocks, memory="", origin="unmeasured")
    return KvCache(
        block_size=task["block_size"] or block_size, blocks=task["kv_blocks"] or blocks, memory="", origin="scenario"
    )


def _matches(row: MeasuredBoot, arguments: Arguments, task: Mapping[str, Any], max_model_len: int) -> bool:
    place = (row.model, row.accelerator_type, row.max_model_len)
    same_place = place == (arguments.public_name, task["accelerator_type"], max_model_len)
    return (
        same_place
        and not any(arguments.has(flag) for flag in UNMEASURED)
        and all(_same(arguments.text(flag, DEFAULTS.get(flag, value)), value) for flag, value in row.flags.items())
    )


def _same(value: str, measured_value: str) -> bool:
    """Compare numbers by value: 0.90 is 0.9."""
    try:
        return float(value) == float(measured_value)
    except ValueError:
        return value == measured_value


DEFAULT_MAX_MODEL_LEN = 131_072  # max_position_embeddings of Gemma 4 and Llama 3.1; made up for the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedEngine:
    """`name` is the model's name, wherever its weights are.

    `knows` is the share of sums it has right, `pace` how many times as long as usual a token takes. `task` is what the
    model does, in vLLM's words; `score` is its classification with one label. `paths` are what its API has.
    `performance` is how long its steps take, None where it answers at once.
    """

    model: str
    name: str
    served_names: tuple[str, ...]
    max_model_len: int
    api_keys: tuple[str, ...]
    has_chat_template: bool
    keeps_stats: bool
    cache: KvCache
    cache_dtype: str
    gpu_memory_utilization: float
    prefix_caching: bool
    user_block_size: bool
    version: str
    load: Mapping[str, float]
    growth: Mapping[str, float]
    graphs: Sequence[Graph] = ()
    knows: float | None = None
    pace: float = 1.0
    vocabulary: int | None = None
    task: str = "generate"
    paths: frozenset[str] = frozenset()
    performance: Performance | None = None

    def accepts(self, path: str, authorization: str) -> bool:
        """Return whether a request gets past vLLM's guard."""
        scheme, _, key = authorization.partition(" ")
        has_key = scheme.lower() == "bearer" and key in self.api_keys
        return has_key or not self.api_keys or not api_paths.is_guarded(path, self.version)


def new_engine(written_arguments: Arguments, task: Mapping[str, Any]) -> EmulatedEngine:
    arguments = written_arguments.but(task["instead"])
    length = arguments.text("max-model-len", "auto")
    max_model_len = DEFAULT_MAX_MODEL_LEN if length in {"auto", "-1"} else read_size(length)
    cache = cache_of(arguments, task, max_model_len)
    keys = arguments.flags.get("api-key") or (task["environment"].get("VLLM_API_KEY", ""),)
    version = task.get("release") or release_of(task["image"]) or VLLM_VERSION
    does = task.get("serves") or task_of(arguments)
    set_flags = [name for name in arguments.flags if arguments.has(name)]
    groups = api_paths.served(version, frozenset({does}), set_flags, task["environment"])
    return EmulatedEngine(
        model=arguments.model,
        name=arguments.public_name,
        served_names=arguments.flags.get("served-model-name") or (arguments.model,),
        max_model_len=max_model_len,
        api_keys=tuple(filter(None, keys)),
        has_chat_template=arguments.has("chat-template") or follows_instructions(arguments.public_name),
        keeps_stats=not arguments.has("disable-log-stats"),
        cache=cache,
        cache_dtype=arguments.text("kv-cache-dtype", "auto"),
        gpu_memory_utilization=float(arguments.text("gpu-memory-utilization", "0.92")),
        prefix_caching=arguments.flags.get("enable-prefix-caching") != ("no",),
        user_block_size=arguments.has("block-size"),
        version=version,
        load=task["load"],
        growth=task.get("growth", {}),
        graphs=graphs_of(arguments, task["environment"]),
        knows=min(_matching_figures(arguments, task, "knows"), default=None),
        pace=prod(_matching_figures(arguments, task, "paces")),
        vocabulary=_vocabulary(arguments.public_name),
        task=does,
        paths=frozenset(path for group in groups for path in group.paths),
        performance=performance_of(
            arguments,
            task,
            block_size=cache.block_size,
            blocks=None if cache.origin == "unmeasured" else cache.blocks,
        ),
    )


def _vocabulary(model: str) -> int | None:
    """Return how many tokens a known model has; None for one that no family lists."""
    try:
        family = families.find_model(model)
    except NotCovered:
        return None
    return None if family is None else family.vocabulary


def _matching_figures(arguments: Arguments, task: Mapping[str, Any], setting: str) -> list[float]:
    """Return the scenario's figures for the flags and variables that have these values; "" fits all."""
    rows: Mapping[str, float] = task.get(setting, {})
    pairs = ((*key.partition("=")[::2], figure) for key, figure in rows.items())
    environment = task["environment"]
    return [
        figure
        for name, value, figure in pairs
        if not name or (environment.get(name) if name.isupper() else arguments.text(name)) == value
    ]


# Marks of a name whose repository ships a chat template, and families whose plain names do.
TUNED = ("-it", "-instruct", "-chat", "-assistant", "gpt-oss", "qwen3", "deepseek-r1", "deepseek-v3")
BASE = ("-base", "-pt")


def follows_instructions(model: str) -> bool:
    name = f"{model.lower()}-"
    return any(mark in name for mark in TUNED) and not any(f"{mark}-" in name for mark in BASE)
