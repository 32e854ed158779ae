"""The engine of the stand-in: its settings by its arguments, its environment and a measured boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tpudeploy.catalog import families
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.domain.model import NotCovered
from tpudeploy.emulator.digests import release_of
from tpudeploy.emulator.machine.vllm.arguments import Arguments, read_size
from tpudeploy.emulator.machine.vllm.graphs import Graph, graphs_of
from tpudeploy.emulator.machine.vllm.measured_boots import Cache, cache_of

DEFAULT_MAX_MODEL_LEN = 131_072  # max_position_embeddings of Gemma 4 and Llama 3.1; made up for the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`name` is the model's name, wherever its weights are.

    `knows` is the share of sums it has right, `pace` how many times as long as usual a token takes.
    """

    model: str
    name: str
    served_names: tuple[str, ...]
    max_model_len: int
    api_keys: tuple[str, ...]
    has_chat_template: bool
    keeps_stats: bool
    cache: Cache
    cache_dtype: str
    gpu_memory_utilization: float
    prefix_caching: bool
    user_block_size: bool
    version: str
    load: Mapping[str, float]
    graphs: Sequence[Graph] = ()
    knows: float | None = None
    pace: float = 1.0
    vocabulary: int | None = None


def new_engine(written_arguments: Arguments, task: Mapping[str, Any]) -> Engine:
    arguments = written_arguments.but(task["instead"])
    length = arguments.text("max-model-len", "auto")
    max_model_len = DEFAULT_MAX_MODEL_LEN if length in {"auto", "-1"} else read_size(length)
    keys = arguments.flags.get("api-key") or (task["environment"].get("VLLM_API_KEY", ""),)
    return Engine(
        model=arguments.model,
        name=arguments.public_name,
        served_names=arguments.flags.get("served-model-name") or (arguments.model,),
        max_model_len=max_model_len,
        api_keys=tuple(filter(None, keys)),
        has_chat_template=arguments.has("chat-template") or follows_instructions(arguments.public_name),
        keeps_stats=not arguments.has("disable-log-stats"),
        cache=cache_of(arguments, task, max_model_len),
        cache_dtype=arguments.text("kv-cache-dtype", "auto"),
        gpu_memory_utilization=float(arguments.text("gpu-memory-utilization", "0.92")),
        prefix_caching=arguments.flags.get("enable-prefix-caching") != ("no",),
        user_block_size=arguments.has("block-size"),
        version=release_of(task["image"]) or VLLM_VERSION,
        load=task["load"],
        graphs=graphs_of(arguments, task["environment"]),
        knows=min(_matching_figures(arguments, task, "knows"), default=None),
        pace=prod(_matching_figures(arguments, task, "paces")),
        vocabulary=_vocabulary(arguments.public_name),
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
