"""Read fields of a Hugging Face config.json with their types, or raise the reason why they cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy.domain.model import (
    Attention,
    Experts,
    FeedForward,
    Implementation,
    LanguageModel,
    NotCovered,
    PartlyCovered,
)

Config = Mapping[str, Any]

# The caveat for every model that vLLM runs through torchax.
ON_TORCHAX = "runs through torchax: how its weights are spread over chips is not verified"

_DEEPEST = 10_000

# Fields of models whose cache or weights the arithmetic does not cover.
_FOREIGN = {
    "kv_lora_rank": "it caches latent attention (MLA)",
    "mamba_d_state": "it mixes attention with state-space layers",
    "linear_num_key_heads": "it mixes attention with linear attention",
}
QUANTIZED = "the checkpoint is quantised"
# How many experts a layer has, by the names of different classes; these values mean a dense layer.
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")
_NO_EXPERTS = (None, 0, 1, False)
# Fields that describe one part of a model; the rest is covered.
_QUANTIZED = {"quantization_config": QUANTIZED, "compression_config": QUANTIZED}
_ADDED = {"num_nextn_predict_layers": "it carries layers for multi-token prediction"}


# Modules that no checkpoint quantizes, or whose elements are counted apart: tables, norms, routers.
_APART = ("lm_head", "embed", "norm", "gate")
_FP8 = "weights: linear layers of an fp8 checkpoint take a byte an element; their scales, below 0.1 %, are left out"


def quantized(config: Config, model: LanguageModel) -> LanguageModel:
    """Return the model with eight-bit linear layers, if the config says so of all of them.

    tpu_inference 0.32.0 keeps both kinds as eight bits on a chip (envs.py, REQUANTIZE_WEIGHT_DTYPE;
    layers/vllm/quantization/compressed_tensors).
    """
    section = config.get("quantization_config")
    if not isinstance(section, Mapping):
        return model
    bits = {group.get("weights", {}).get("num_bits") for group in (section.get("config_groups") or {}).values()}
    has_eight = section.get("quant_method") == "fp8" or (
        section.get("quant_method") == "compressed-tensors" and bits == {8}
    )
    exceptions = (*(section.get("modules_to_not_convert") or ()), *(section.get("ignore") or ()))
    # A gated feed-forward's `gate_proj` is no router.
    is_whole = all(any(part in str(name).rpartition(".")[2] for part in _APART) for name in exceptions)
    is_whole = is_whole and not any("gate_" in str(name) for name in exceptions)
    if not has_eight or not is_whole:
        return model
    return replace(model, linear_dtype="fp8", unverified=(*model.unverified, _FP8))


def refuse_foreign(config: Config) -> None:
    """Raise NotCovered for fields that no family covers, in the config or its text part."""
    because = _reason(config, _FOREIGN)
    if because:
        raise NotCovered(because)


def refuse_part(config: Config, model: LanguageModel) -> None:
    """Raise PartlyCovered if the config describes more than `model`, which was read from it, or NotCovered."""
    experts = next((name for name in EXPERTS if text(config).get(name) not in _NO_EXPERTS), None)
    if experts is not None and model.experts is None:
        raise NotCovered(f"its config has experts (`{experts}`), and {model.architecture} has none")
    of_weights = "" if model.linear_dtype else _reason(config, _QUANTIZED)
    added = _reason(config, _ADDED)
    if of_weights or added:
        raise PartlyCovered(of_weights or added, model, only_adds=not of_weights)


def _reason(config: Config, table: Mapping[str, str]) -> str:
    trees = (config, text(config))
    return next((f"{why} (`{name}`)" for tree in trees for name, why in table.items() if tree.get(name)), "")


def text(config: Config) -> Config:
    """Return the part that describes the language model, which multimodal configs nest."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) else config


def whole(config: Config, name: str, default: int | None = None, *, most: int = 2**31) -> int:
    """Return a whole number above zero, or `default` if it is absent or null."""
    value = config.get(name)
    value = default if value is None else value
    if type(value) is not int or not 0 < value <= most:
        problem = "is absent" if value is None else f"is {str(value)[:40]!r}"
        raise NotCovered(f"its config needs `{name}` as a whole number from 1 to {most:,}; it {problem}")
    return value


def depth(config: Config) -> int:
    """Return the number of layers."""
    return whole(config, "num_hidden_layers", most=_DEEPEST)


def count(config: Config, name: str) -> int:
    """Return a whole number that may be zero, which is also the meaning of absence."""
    return 0 if config.get(name) in (None, 0) else whole(config, name)


def layer_kinds(config: Config, covered: Iterable[str], *, layers: int) -> tuple[str, ...] | None:
    """Return `layer_types`, one per layer, or None if the config does not have it."""
    kinds = config.get("layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list | tuple) or len(kinds) != layers:
        raise NotCovered(f"its `layer_types` should name {layers} layers")
    foreign = sorted({str(kind) for kind in kinds} - set(covered))
    if foreign:
        raise NotCovered(f"it has layers of the kind `{foreign[0]}`")
    return tuple(kinds)


UNCOMPARED = "weights: what lies on a chip is read from the source, not compared with a boot"


def decoder(
    name: str,
    architecture: str,
    config: Config,
    *,
    source: str,
    on_torchax: bool = False,
    experts: Experts | None = None,
) -> LanguageModel:
    """Return the plain form, in which a family replaces what it varies. Raise NotCovered where a field is missing.

    Llama began it: one kind of attention, one feed-forward or its experts, and two norms a layer.
    """
    layers, hidden = depth(config), whole(config, "hidden_size")
    heads = whole(config, "num_attention_heads")
    attention = Attention(
        layers=layers,
        cached=layers,
        heads=heads,
        kv_heads=whole(config, "num_key_value_heads", heads),
        head_dim=whole(config, "head_dim", hidden // heads),
    )
    dense = () if experts else (FeedForward(layers=layers, width=whole(config, "intermediate_size")),)
    return LanguageModel(
        name=name,
        architecture=architecture,
        implementation=Implementation.TORCHAX if on_torchax else Implementation.JAX,
        layers=layers,
        hidden=hidden,
        vocabulary=whole(config, "vocab_size"),
        is_tied=bool(config.get("tie_word_embeddings")),
        max_position=whole(config, "max_position_embeddings"),
        attention=(attention,),
        feed_forward=dense,
        experts=experts,
        norms=(2 * layers + 1) * hidden,
        pads_kv_weights=True,
        source=source,
        unverified=(ON_TORCHAX if on_torchax else UNCOMPARED,),
    )
