"""Mistral and Mixtral: dense and mixture-of-experts decoders that torchax runs.

Source: litgpt's config.py, each entry of which links its Hugging Face config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.catalog.families.reading import Config, decoder, depth, whole
from tpudeploy.domain.model import Experts, LanguageModel

_MIXTRAL = "MixtralForCausalLM"
ARCHITECTURES = ("MistralForCausalLM", _MIXTRAL)


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for a missing field."""
    experts = None
    if architecture == _MIXTRAL:
        width = whole(config, "intermediate_size")
        each = whole(config, "num_experts_per_tok", 1)
        count = whole(config, "num_local_experts")
        experts = Experts(layers=depth(config), count=count, width=width, per_token=each)
    plain = decoder(name, architecture, config, source=__doc__ or "", on_torchax=True, experts=experts)
    if config.get("sliding_window") is None:
        return plain
    (attention,) = plain.attention
    return replace(plain, attention=(replace(attention, window=whole(config, "sliding_window")),))


def _row(layers: int, hidden: int, heads: int, width: int, *, vocabulary: int, length: int, **fields: int) -> Config:
    return {
        "architectures": [_MIXTRAL if "num_local_experts" in fields else "MistralForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "intermediate_size": width,
        "vocab_size": vocabulary,
        "max_position_embeddings": length,
        "tie_word_embeddings": False,
        **fields,
    }


_7B = (32, 4_096, 32, 14_336)
_V1 = _row(*_7B, vocabulary=32_000, length=32_768, sliding_window=4_096)
_8X7B = _row(*_7B, vocabulary=32_000, length=32_768, num_local_experts=8, num_experts_per_tok=2)
_8X22B = _row(56, 6_144, 48, 16_384, vocabulary=32_768, length=65_536, num_local_experts=8, num_experts_per_tok=2)
_V3 = _row(*_7B, vocabulary=32_768, length=32_768)
# 131,072 positions are those of the model card (unverified); litgpt has 32,768.
_LARGE = _row(88, 12_288, 96, 28_672, vocabulary=32_768, length=131_072)

MODELS: Mapping[str, Config] = {
    "mistralai/Mistral-7B-v0.1": _V1,
    "mistralai/Mistral-7B-Instruct-v0.1": _V1,
    "mistralai/Mistral-7B-Instruct-v0.2": _row(*_7B, vocabulary=32_000, length=32_768),
    "mistralai/Mistral-7B-v0.3": _V3,
    "mistralai/Mathstral-7B-v0.1": _V3,
    "mistralai/Mixtral-8x7B-v0.1": _8X7B,
    "mistralai/Mixtral-8x22B-v0.1": _8X22B,
    "mistralai/Mixtral-8x22B-Instruct-v0.1": _8X22B,
    "mistralai/Mistral-Large-Instruct-2407": _LARGE,
    "mistralai/Mistral-Large-Instruct-2411": _LARGE,
}
