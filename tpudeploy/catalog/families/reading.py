"""How a family reads a Hugging Face config.json: fields of a known type, or the reason why it cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpudeploy.domain.model import LanguageModel, NotCovered, PartlyCovered

Config = Mapping[str, Any]

# Said of every model that vLLM runs through torchax.
ON_TORCHAX = "runs through torchax: how its weights are spread over chips is not verified"

_DEEPEST = 10_000

# Fields that say the cache or the weights are of a kind that the arithmetic does not know.
_FOREIGN = {
    "kv_lora_rank": "it caches latent attention (MLA)",
    "mamba_d_state": "it mixes attention with state-space layers",
    "linear_num_key_heads": "it mixes attention with linear attention",
}
# Fields of one part, without which the rest is as it is.
_QUANTIZED = {
    "quantization_config": "the checkpoint is quantised",
    "compression_config": "the checkpoint is quantised",
}
_ADDED = {"num_nextn_predict_layers": "it carries layers for multi-token prediction"}


def refuse_foreign(config: Config) -> None:
    """Raise NotCovered for what no family here covers, in the config or its text part."""
    because = _reason(config, _FOREIGN)
    if because:
        raise NotCovered(because)


def refuse_part(config: Config, model: LanguageModel) -> None:
    """Raise PartlyCovered where the config describes more than `model`, which was read from it."""
    quantized, added = _reason(config, _QUANTIZED), _reason(config, _ADDED)
    if quantized or added:
        raise PartlyCovered(quantized or added, model, only_adds=not quantized)


def _reason(config: Config, table: Mapping[str, str]) -> str:
    trees = (config, text(config))
    return next((f"{why} (`{name}`)" for tree in trees for name, why in table.items() if tree.get(name)), "")


def text(config: Config) -> Config:
    """The part that describes the language model: multimodal configs nest it."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) else config


def whole(config: Config, name: str, default: int | None = None, *, most: int = 2**31) -> int:
    """A whole number above zero, or `default` where it is absent or null."""
    value = config.get(name)
    value = default if value is None else value
    if type(value) is not int or not 0 < value <= most:
        found = "is absent" if value is None else f"is {str(value)[:40]!r}"
        raise NotCovered(f"its config needs `{name}` as a whole number from 1 to {most:,}; it {found}")
    return value


def depth(config: Config) -> int:
    """The number of layers."""
    return whole(config, "num_hidden_layers", most=_DEEPEST)


def counted(config: Config, name: str) -> int:
    """A whole number that may be zero, which is what absence means."""
    return 0 if config.get(name) in (None, 0) else whole(config, name)


def layer_kinds(config: Config, known: Iterable[str], *, layers: int) -> tuple[str, ...] | None:
    """`layer_types`, one a layer, or None where the config has none."""
    kinds = config.get("layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list | tuple) or len(kinds) != layers:
        raise NotCovered(f"its `layer_types` should name {layers} layers")
    foreign = sorted({str(kind) for kind in kinds} - set(known))
    if foreign:
        raise NotCovered(f"it has layers of the kind `{foreign[0]}`")
    return tuple(kinds)
