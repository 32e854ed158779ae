"""Settings whose effect on memory the arithmetic does not know: it says so, rather than leave them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.budget import Engine
from tpudeploy.domain.model import LanguageModel

_OFF = ("", "0", "false")

# Flags by canonical name; each makes the budget another one when it is written with a value that is not "off".
_FLAGS: Mapping[str, str] = {
    "quantization": "`--quantization` changes the weights' sizes",
    "quantization-config": "`--quantization-config` changes the weights' sizes",
    "pipeline-parallel-size": "the layers would be spread over stages",
    "decode-context-parallel-size": "the KV cache would be spread over contexts",
    "prefill-context-parallel-size": "the KV cache would be spread over contexts",
    "enable-lora": "adapters take memory of their own",
    "kv-transfer-config": "KV transfer takes memory of its own",
    "kv-offloading-size": "KV offloading takes memory of its own",
    "hf-overrides": "it overrides the model's own config",
    "runner": "a runner other than generation serves no tokens",
    "convert": "a converted model serves no tokens",
    "disable-hybrid-kv-cache-manager": "it changes how layers with a window are cached",
    "kv-cache-dtype-skip-layers": "some layers would have another KV type",
    "model-impl": "it chooses another implementation of the model",
}
_DEFAULTS: Mapping[str, object] = {
    "pipeline-parallel-size": 1,
    "decode-context-parallel-size": 1,
    "prefill-context-parallel-size": 1,
    "runner": "auto",
    "convert": "auto",
    "model-impl": "auto",
}
# Variables of tpu_inference (0.32.0 envs.py) that change shapes or sharding.
_VARIABLES: Mapping[str, str] = {
    "NEW_MODEL_DESIGN": "the new model design shards otherwise",
    "USE_BATCHED_RPA_KERNEL": "the batched attention kernel shapes the KV cache otherwise",
    "USE_BATCHED_RPA_SEQ_ON_LANE": "the batched attention kernel shapes the KV cache otherwise",
    "USE_2D_TP": "two-dimensional tensor parallelism shards otherwise",
    "USE_MOE_EP_KERNEL": "that kernel pads the experts otherwise",
    "USE_UNFUSED_MEGABLOCKS": "that kernel pads the experts otherwise",
    "USE_DENSE_MOE": "that kernel pads the experts otherwise",
    "MOE_REQUANTIZE_WEIGHT_DTYPE": "the experts would be quantised as they are loaded",
    "BF16_LINEAR_REQUANTIZE_PATTERNS": "weights would be quantised as they are loaded",
    "PREFILL_SLICES": "prefill and decoding would be apart",
    "DECODE_SLICES": "prefill and decoding would be apart",
}
_MOST_BUCKETS = 4_096
_MOST_PROPOSED = 1_024
_SIZED_ADDITIONS = {"mm-encoder-tp-mode", "compilation_sizes"}


def because_of(settings: Mapping[str, Any], env: Mapping[str, str], model: LanguageModel) -> str:
    """The first reason found, or ""."""
    for name, why in _FLAGS.items():
        value = settings.get(name)
        if value not in (None, False, _DEFAULTS.get(name)):
            return f"{why} (`{name}`)"
    for name, why in _VARIABLES.items():
        if env.get(name, "").lower() not in _OFF:
            return f"{why} ({name})"
    return _of_speculation(settings) or _of_additions(settings) or _of_implementation(env, model)


def out_of_range(engine: Engine) -> str:
    """What no engine would take, or no person mean; it would only keep the arithmetic busy."""
    least, most = engine.min_token_bucket, engine.max_num_batched_tokens
    if least < 1 or least & (least - 1):
        return f"MIN_TOKEN_BUCKET {least} is no power of two"
    if engine.padding_gap and most // engine.padding_gap > _MOST_BUCKETS:
        return f"padding_gap {engine.padding_gap} makes more than {_MOST_BUCKETS:,} token buckets up to {most:,}"
    if engine.speculation is not None and not 1 <= engine.speculation.tokens <= _MOST_PROPOSED:
        return f"{engine.speculation.tokens} speculative tokens are not between 1 and {_MOST_PROPOSED}"
    return ""


def _of_speculation(settings: Mapping[str, Any]) -> str:
    config = settings.get("speculative-config") or {}
    method = config.get("method", "ngram") if isinstance(config, Mapping) else ""
    return "" if method == "ngram" else f"speculation by {method!r} loads a draft model of a size that is not known"


def _of_additions(settings: Mapping[str, Any]) -> str:
    names = sorted(set(settings.get("additional-config", {})) - _SIZED_ADDITIONS)
    return f"what `additional_config: {{{names[0]}: …}}` does to memory is not known" if names else ""


def _of_implementation(env: Mapping[str, str], model: LanguageModel) -> str:
    asked = env.get("MODEL_IMPL_TYPE", "auto").lower()
    if asked not in ("auto", model.implementation.value):
        return (
            f"MODEL_IMPL_TYPE asks for {asked}, and the arithmetic knows {model.name} as {model.implementation.value}"
        )
    if env.get("TPU_MULTIPROCESS_DP", "1").lower() in _OFF:
        return "data parallelism within one process shards otherwise (TPU_MULTIPROCESS_DP)"
    return ""
