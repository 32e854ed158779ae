"""Ask the engine about a profile: what its model takes, and its graphs, which a file keeps as they are compiled.

Why no compile cache is written: decision 89 in docs/decisions.md.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tpudeploy import catalog, loading
from tpudeploy.catalog import flags
from tpudeploy.catalog.engines import DIFFERENCES, numbers
from tpudeploy.catalog.families import answers
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.engine import Engine
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.pins import Pins
from tpudeploy.features.compile import CompiledGraph
from tpudeploy.features.compile.compiled import Compiled
from tpudeploy.features.compile.engine_process import ask, read_row
from tpudeploy.features.compile.rows import is_the_engines
from tpudeploy.features.compile.store import CompiledStore
from tpudeploy.loading import OneProfile
from tpudeploy.pins import COMMIT
from tpudeploy.sizing.checks.check import argument

# The generations and sizes that the engine was asked about without a chip.
_CHIPS, _DEVICES = ("v5e", "v6e"), (1, 2, 4, 8)
_GRAPH_FIELDS = ("graph", "function", "temp_bytes", "code_bytes", "cycles", "seconds", "refusal")


def compile_graphs(
    profile: OneProfile,
    *,
    pins: Pins,
    python: str,
    store: CompiledStore,
    only: tuple[str, ...],
    seconds: float,
    on_message: Callable[[str], None],
) -> Compiled:
    """Compile what the files in `store` lack, and return all of it. Raise as `operation.compile_profile`.

    What another libtpu compiled says nothing of this one: of the files, the child continues that of its own versions.
    """
    deployment, config = resolve_question(profile, pins)
    asked = request(deployment, config)
    slug = re.sub(r"[^A-Za-z0-9.-]+", "-", deployment.model_id)
    name = f"{slug}-{deployment.accelerator.name}.json"
    files = {file.versions: file for file in store.read_all(name) if file.settings == asked["args"]}
    done = {versions: sorted({graph.graph for graph in file.graphs}) for versions, file in files.items()}
    asked["graphs"] = {"done": done, "only": list(only)}
    compiled: Compiled | None = None
    graphs: tuple[CompiledGraph, ...] = ()
    part: list[CompiledGraph] = []
    for row in engine_rows(python, asked, deployment.engine, seconds=seconds):
        if row.get("is_head"):
            compiled = _head(row, deployment, asked["args"])
            earlier = files.get(compiled.versions)
            graphs = () if earlier is None else earlier.graphs
        elif "temp_bytes" in row or "refusal" in row:
            part.append(_graph(row))
        elif compiled is not None and (row.get("is_done") or "is_complete" in row):
            # A graph counts when all of it is compiled: what a kill cuts is compiled again.
            graphs, part = (*graphs, *part), []
            compiled = store.keep(
                replace(compiled, graphs=graphs, is_complete=row.get("is_complete") is True), name, on_message
            )
            on_message(f"{row.get('graph', 'done')}: {len(graphs)} graphs in {compiled.path}")
    if compiled is None:
        raise QueryFailed("The engine ended without an answer.")
    return compiled


def _graph(row: Mapping[str, Any]) -> CompiledGraph:
    return CompiledGraph(**{field: row[field] for field in _GRAPH_FIELDS if field in row})


def _head(row: Mapping[str, Any], deployment: Deployment, settings: Mapping[str, Any]) -> Compiled:
    return Compiled(
        model=deployment.model_id,
        accelerator_type=deployment.accelerator.name,
        engine=str(row["engine"]),
        libtpu=str(row["libtpu"]),
        settings=settings,
        weights_bytes_per_chip=int(row["weights_bytes_per_chip"]),
        num_blocks=int(row["num_blocks"]),
        graphs=(),
        is_complete=False,
    )


def engine_answer(
    profile: OneProfile, *, pins: Pins, python: str, seconds: float
) -> tuple[Deployment, Mapping[str, Any]]:
    """Return a profile's deployment, and what the engine makes of its model. Raise as `compile_graphs`."""
    deployment, config = resolve_question(profile, pins)
    rows = list(engine_rows(python, request(deployment, config), deployment.engine, seconds=seconds))
    answer = next((row["answer"] for row in rows if "answer" in row), None)
    if answer is None:
        raise QueryFailed("The engine ended without an answer.")
    return deployment, {**answer, "config": config}


def engine_rows(
    python: str, asked: Mapping[str, Any], engine: Engine, *, seconds: float
) -> Iterator[Mapping[str, Any]]:
    """Yield the engine's rows. Raise `errors.QueryFailed` with its words where it refuses the profile.

    Raise `errors.UsageError` if the image has another release than `python`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tpudeploy-engine-") as scratch,
        # Closed here, so that an engine of another release ends before its graphs are compiled.
        closing(ask(python, [asked], seconds=seconds, log=Path(scratch) / "log")) as rows,
    ):
        for row in rows:
            if "refusal" in row and "graph" not in row:
                raise _refusal(str(row["refusal"]))
            _refuse_another_release(python, str(row.get("answer", row).get("engine", "")), engine)
            yield row


def _refusal(words: str) -> QueryFailed:
    """Return the error for what ended the engine: its own refusal, or a call that has no stand-in without a chip."""
    if is_the_engines(words):
        return QueryFailed(f"The engine refuses it: {words}")
    return QueryFailed(f"The engine stopped: {words}", hint="On a chip it may go on: this says nothing of the profile.")


def _refuse_another_release(python: str, release: str, engine: Engine) -> None:
    if release and engine.release is not None and numbers(release) != numbers(engine.release):
        message = f"{python} has tpu-inference {release}, and the image has {engine.title}."
        hint = f"Name a Python with vllm-tpu {engine.release}, or the image of {release} in serving.image."
        raise UsageError(message, hint=hint)


def request(deployment: Deployment, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the engine is asked: the model, the slice, and the settings with every default decided."""
    engine, kind = deployment.budget.engine, deployment.accelerator
    if kind.generation not in _CHIPS or kind.hosts > 1:
        raise UsageError(f"The engine is asked for one host of {' or '.join(_CHIPS)}, and this is {kind.name}.")
    if engine is None or engine.tensor_parallel not in _DEVICES:
        raise UsageError(
            "The engine's settings are not known.",
            hint="Write serving.max_model_len, max_num_batched_tokens and a tensor_parallel_size of 1, 2, 4 or 8.",
        )
    if engine.pipeline_parallel > 1:
        message = "The engine is asked for one process, and pipeline stages are several."
        raise UsageError(message, hint="Leave pipeline_parallel_size out to see the whole model on these chips.")
    generation = catalog.generation(kind.generation)
    return {
        "chip": kind.generation,
        "hbm_bytes": generation.most_bytes,
        "tensor_parallel_size": engine.tensor_parallel,
        "config": config,
        "env": dict(deployment.container.environment) if deployment.attributes.get("serving.env") else {},
        "args": arguments(deployment, engine),
    }


# Flags that decide weights, cache or graphs beside the settings of `sizing`. Those of a server decide none.
_FLAGS_OF_GRAPHS = (
    *("additional_config", "async_scheduling", "attention_config", "compilation_config", "convert"),
    *("decode_context_parallel_size", "enable_chunked_prefill", "enable_expert_parallel", "enable_lora"),
    *("enable_prefix_caching", "enforce_eager", "hf_overrides", "kv_transfer_config", "language_model_only"),
    *("limit_mm_per_prompt", "max_cpu_loras", "max_logprobs", "max_lora_rank", "max_loras", "mm_encoder_tp_mode"),
    *("model_impl", "num_gpu_blocks_override", "quantization", "runner", "spec_model", "spec_tokens"),
    *("speculative_config",),
)


def arguments(deployment: Deployment, engine: EngineSettings) -> dict[str, Any]:
    """Return the settings that decide a profile's graphs: by name, and `words` as `vllm serve` reads them."""
    words = _words(deployment)
    arguments: dict[str, Any] = {
        "tensor_parallel_size": engine.tensor_parallel,
        "max_model_len": engine.max_model_len,
        "max_num_seqs": engine.max_num_seqs,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "gpu_memory_utilization": engine.utilization,
        "kv_cache_dtype": engine.kv_dtype,
        "dtype": engine.dtype,
    }
    return (
        arguments
        | ({"block_size": engine.block_size} if engine.block_size else {})
        | ({"words": words} if words else {})
    )


def _words(deployment: Deployment) -> list[str]:
    words: list[str] = []
    for name in _FLAGS_OF_GRAPHS:
        flag = flags.find(name, deployment.engine.release)
        if flag is not None:
            _, value = argument(deployment, flag.name)
            words += flags.express(flags.with_any_choice(flag), value)
    return words


def resolve_question(profile: OneProfile, pins: Pins) -> tuple[Deployment, Mapping[str, Any]]:
    """Return a profile's deployment and the config.json of its model. Raise `errors.UsageError` without one.

    `pins` tell more of the engine than the image's name and tag, and have the configs of models that were looked up.
    """
    checked = loading.judge(loading.profile(profile), pins)
    deployment = loading.sized(checked, pins)
    if deployment.engine.kind in DIFFERENCES:
        hint = "Name an image of vllm-tpu: the graphs are those of tpu-inference."
        raise UsageError(f"{deployment.engine.title} cannot be compiled or asked without a chip.", hint=hint)
    _refuse_draft(deployment)
    text = loading.config_json_of(checked) or _config_on_hub(deployment, pins)
    config = dict(answers.config_of(deployment.model_id)) if text is None else dict(read_row(text.encode()))
    if not config:
        hint = "Name its config.json in model.config; the engine reads the whole of it."
        raise UsageError(f"The config of {deployment.model_id} is not known.", hint=hint)
    return deployment, config


def _refuse_draft(deployment: Deployment) -> None:
    """Raise `errors.UsageError` for a draft model: the engine would look for its config.json on the hub, and stop."""
    _, config = argument(deployment, "speculative-config")
    draft = config.get("model") if isinstance(config, Mapping) else None
    draft = draft or argument(deployment, "spec-model")[1]
    if draft:
        message = f"The engine cannot be asked with the draft model {draft}: its config is not known here."
        hint = "Leave the draft model out, and add its own memory; ngram needs none."
        raise UsageError(message, hint=hint)


def _config_on_hub(deployment: Deployment, pins: Pins) -> str | None:
    """Return the config.json of the commit that the lock file pins the model to, or None."""
    checkpoint = pins.checkpoints.get(str(deployment.attributes.get(COMMIT)))
    return checkpoint.config or None if checkpoint is not None else None
