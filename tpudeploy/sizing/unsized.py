"""Settings whose effect on memory the arithmetic does not know: it names them instead of leaving them out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog.engines import DIFFERENCES
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.engine import EngineKind
from tpudeploy.domain.model import LanguageModel
from tpudeploy.domain.task import TASKS, TaskOrigin
from tpudeploy.sizing.stages import can_be_split

_OFF = ("", "0", "false")
_STAGES = "pipeline-parallel-size"


class UnsizedQuantity(StrEnum):
    """The quantities that a setting may change, which decide how much of the arithmetic is true without it."""

    ADDS = "adds"  # memory, and nothing else: the base is a lower bound
    WEIGHTS = "weights"  # their bytes; heads, graphs and the cache's shape stay
    LAYOUT = "layout"  # how weights or cache lie on the chips; the model's heads and the engine's steps stay
    MODEL = "model"  # the model itself


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsizedSetting:
    """One setting, and `why` its effect on memory is not known. `name` is a flag's, a variable's, or `tpu.type`."""

    name: str
    effect: UnsizedQuantity
    why: str


# Flags by canonical name; each makes the budget another one when it is written with a value that is not "off".
_FLAGS: Mapping[str, tuple[UnsizedQuantity, str]] = {
    "quantization": (UnsizedQuantity.WEIGHTS, "`--quantization` changes the weights' sizes"),
    "quantization-config": (UnsizedQuantity.WEIGHTS, "`--quantization-config` changes the weights' sizes"),
    _STAGES: (UnsizedQuantity.LAYOUT, "layers of several kinds would be spread over stages"),
    "decode-context-parallel-size": (UnsizedQuantity.LAYOUT, "the KV cache would be spread over contexts"),
    "prefill-context-parallel-size": (UnsizedQuantity.LAYOUT, "the KV cache would be spread over contexts"),
    "enable-lora": (UnsizedQuantity.ADDS, "adapters take memory of their own"),
    "kv-transfer-config": (UnsizedQuantity.ADDS, "KV transfer takes memory of its own"),
    "kv-offloading-size": (UnsizedQuantity.ADDS, "KV offloading takes memory of its own"),
    "hf-overrides": (UnsizedQuantity.MODEL, "it overrides the model's own config"),
    "disable-hybrid-kv-cache-manager": (UnsizedQuantity.LAYOUT, "it changes how layers with a window are cached"),
    "kv-cache-dtype-skip-layers": (UnsizedQuantity.LAYOUT, "some layers would have another KV type"),
    "model-impl": (UnsizedQuantity.LAYOUT, "it chooses another implementation of the model"),
}
_DEFAULTS: Mapping[str, object] = {
    "pipeline-parallel-size": 1,
    "decode-context-parallel-size": 1,
    "prefill-context-parallel-size": 1,
    "model-impl": "auto",
}
# Variables of tpu_inference (0.32.0 envs.py) that change shapes or sharding.
_VARIABLES: Mapping[str, tuple[UnsizedQuantity, str]] = {
    "NEW_MODEL_DESIGN": (UnsizedQuantity.LAYOUT, "the new model design shards otherwise"),
    "USE_BATCHED_RPA_KERNEL": (UnsizedQuantity.LAYOUT, "the batched attention kernel shapes the KV cache otherwise"),
    "USE_BATCHED_RPA_SEQ_ON_LANE": (
        UnsizedQuantity.LAYOUT,
        "the batched attention kernel shapes the KV cache otherwise",
    ),
    "USE_2D_TP": (UnsizedQuantity.LAYOUT, "two-dimensional tensor parallelism shards otherwise"),
    "USE_MOE_EP_KERNEL": (UnsizedQuantity.WEIGHTS, "that kernel pads the experts otherwise"),
    "USE_UNFUSED_MEGABLOCKS": (UnsizedQuantity.WEIGHTS, "that kernel pads the experts otherwise"),
    "USE_DENSE_MOE": (UnsizedQuantity.WEIGHTS, "that kernel pads the experts otherwise"),
    "MOE_REQUANTIZE_WEIGHT_DTYPE": (UnsizedQuantity.WEIGHTS, "the experts would be quantised as they are loaded"),
    "BF16_LINEAR_REQUANTIZE_PATTERNS": (UnsizedQuantity.WEIGHTS, "weights would be quantised as they are loaded"),
    "PREFILL_SLICES": (UnsizedQuantity.LAYOUT, "prefill and decoding would be apart"),
    "DECODE_SLICES": (UnsizedQuantity.LAYOUT, "prefill and decoding would be apart"),
}
_MOST_BUCKETS = 4_096
_MOST_PROPOSED = 1_024
_SIZED_ADDITIONS = {"mm-encoder-tp-mode", "compilation_sizes"}
_QUANTIZING_ADDITION = "quantization"  # qwix: weights are quantised as they are loaded


def unknown_effects(
    settings: Mapping[str, Any], env: Mapping[str, str], model: LanguageModel, question: Collection[str] = ()
) -> tuple[UnsizedSetting, ...]:
    """Return every setting whose effect on memory the arithmetic does not know.

    With those in `question` the engine itself was asked about the model.
    """
    names = {"additional-config" if name == "enable_dp_attention" else name for name in question}
    return tuple(each for each in _unknown_effects(settings, env, model) if each.name not in names)


def _unknown_effects(
    settings: Mapping[str, Any], env: Mapping[str, str], model: LanguageModel
) -> tuple[UnsizedSetting, ...]:
    return (
        *_flags(settings, model),
        *_variables(env),
        *_speculation(settings),
        *_additions(settings),
        *_implementation(env, model),
        *_of_answer(settings, model),
    )


def of_task(origin: TaskOrigin, settings: Mapping[str, Any], model: LanguageModel) -> Iterator[UnsizedSetting]:
    """Yield what is not known of a model that pools; its layers and heads are those of the model it is made of."""
    if model.answer is not None and model.answer.is_pooling:
        return  # the engine was asked about it as one that pools
    if not TASKS[origin.task].completions:
        name = next((name for name in ("runner", "convert", "pooler-config") if settings.get(name)), "")
        why = f"a model that pools may drop its output table and its KV cache ({origin.because})"
        yield UnsizedSetting(name=name, effect=UnsizedQuantity.LAYOUT, why=why)


def of_engine(kind: EngineKind) -> Iterator[UnsizedSetting]:
    """Yield what is not known of an engine that lays out its memory in another way than the arithmetic."""
    difference = DIFFERENCES.get(kind)
    if difference is not None:
        yield UnsizedSetting(name="serving.image", effect=UnsizedQuantity.LAYOUT, why=difference.memory)


def unknown_memory(kind: AcceleratorType) -> Iterator[UnsizedSetting]:
    """Yield the HBM limit of a generation for which none is recorded: the budget of the nominal HBM is then a bound."""
    generation = catalog.generation(kind.generation)
    if generation.bytes_limit is None:
        why = (
            f"the HBM limit that the runtime reports for {generation.name} is not recorded; figures are for the "
            f"{generation.hbm_gib} GiB of a {kind.device_noun}, which it cannot exceed"
        )
        yield UnsizedSetting(name="tpu.type", effect=UnsizedQuantity.ADDS, why=why)


def _of_answer(settings: Mapping[str, Any], model: LanguageModel) -> Iterator[UnsizedSetting]:
    """Yield what the engine was not asked: its answer has one sharding of the weights for each number of chips."""
    if model.answer is None:
        return
    if settings.get("enable-expert-parallel") is True:
        why = "with expert parallelism the engine was not asked about this model (`enable-expert-parallel`)"
        yield UnsizedSetting(name="enable-expert-parallel", effect=UnsizedQuantity.WEIGHTS, why=why)


def _flags(settings: Mapping[str, Any], model: LanguageModel) -> Iterator[UnsizedSetting]:
    for name, (effect, why) in _FLAGS.items():
        if name == _STAGES and can_be_split(model):
            continue
        if settings.get(name) not in (None, False, _DEFAULTS.get(name)):
            yield UnsizedSetting(name=name, effect=effect, why=f"{why} (`{name}`)")


def _variables(env: Mapping[str, str]) -> Iterator[UnsizedSetting]:
    for name, (effect, why) in _VARIABLES.items():
        if env.get(name, "").lower() not in _OFF:
            yield UnsizedSetting(name=name, effect=effect, why=f"{why} ({name})")


def out_of_range(engine: EngineSettings) -> str:
    """Return which setting no engine would take and no person would mean, or "": it would only take computing time."""
    least, most = engine.min_token_bucket, engine.max_num_batched_tokens
    if least < 1 or least & (least - 1):
        return f"MIN_TOKEN_BUCKET {least} is not a power of two"
    if engine.padding_gap and most // engine.padding_gap > _MOST_BUCKETS:
        return f"padding_gap {engine.padding_gap} makes more than {_MOST_BUCKETS:,} token buckets up to {most:,}"
    if engine.speculation is not None:
        # A draft model may say itself how many tokens to propose, where the profile does not.
        fewest = 1 if engine.speculation.method == "ngram" else 0
        if not fewest <= engine.speculation.tokens <= _MOST_PROPOSED:
            return f"{engine.speculation.tokens} speculative tokens are not between 1 and {_MOST_PROPOSED}"
    return ""


def _speculation(settings: Mapping[str, Any]) -> Iterator[UnsizedSetting]:
    config = settings.get("speculative-config") or {}
    method = config.get("method", "ngram") if isinstance(config, Mapping) else ""
    if method != "ngram":
        why = f"speculation by {method!r} loads a draft model of a size that is not known"
        yield UnsizedSetting(name="speculative-config", effect=UnsizedQuantity.ADDS, why=why)


def _additions(settings: Mapping[str, Any]) -> Iterator[UnsizedSetting]:
    for name in sorted(set(settings.get("additional-config", {})) - _SIZED_ADDITIONS):
        effect = UnsizedQuantity.WEIGHTS if name == _QUANTIZING_ADDITION else UnsizedQuantity.LAYOUT
        why = f"what `additional_config: {{{name}: …}}` does to memory is not known"
        yield UnsizedSetting(name="additional-config", effect=effect, why=why)


def _implementation(env: Mapping[str, str], model: LanguageModel) -> Iterator[UnsizedSetting]:
    choice = env.get("MODEL_IMPL_TYPE", "auto").lower()
    if choice not in ("auto", model.implementation.value):
        why = f"MODEL_IMPL_TYPE is {choice}, and the arithmetic knows {model.name} as {model.implementation.value}"
        yield UnsizedSetting(name="MODEL_IMPL_TYPE", effect=UnsizedQuantity.LAYOUT, why=why)
    if env.get("TPU_MULTIPROCESS_DP", "1").lower() in _OFF:
        why = "data parallelism within one process shards otherwise (TPU_MULTIPROCESS_DP)"
        yield UnsizedSetting(name="TPU_MULTIPROCESS_DP", effect=UnsizedQuantity.LAYOUT, why=why)
