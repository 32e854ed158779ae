"""Qwen 2 and 3: dense decoders with biases (2) or normed heads (3), and Qwen 3's mixture of experts.

Source: litgpt's config.py, each entry of which links its Hugging Face config.json; tied embeddings follow from the
published sums of parameters. On a chip: tpu_inference 0.32.0 models/jax/qwen2.py and qwen3.py; the mixture of experts
runs through torchax (models/common/model_loader.py, _VLLM_PREFERRED_ARCHITECTURES).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.catalog.families.reading import Config, decoder, depth, whole
from tpudeploy.domain.model import Experts, LanguageModel, NotCovered

_QWEN2, _QWEN3, _MOE = "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"
ARCHITECTURES = (_QWEN2, _QWEN3, _MOE)


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for a missing field, or if some layers have no experts."""
    layers = depth(config)
    experts = _experts(config, layers) if architecture == _MOE else None
    plain = decoder(name, architecture, config, source=__doc__ or "", on_torchax=experts is not None, experts=experts)
    (attention,) = plain.attention
    if architecture == _QWEN2:
        return replace(plain, attention=(replace(attention, has_bias=True),))
    return replace(plain, norms=plain.norms + 2 * attention.head_dim * layers)  # queries and keys are normed too


def _experts(config: Config, layers: int) -> Experts:
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step") not in (None, 1):
        raise NotCovered("some of its layers have no experts (`mlp_only_layers`, `decoder_sparse_step`)")
    width = whole(config, "moe_intermediate_size")
    each = whole(config, "num_experts_per_tok", 1)
    return Experts(layers=layers, count=whole(config, "num_experts"), width=width, per_token=each)


def _row(layers: int, hidden: int, heads: int, width: int, *, is_tied: bool) -> Config:
    return {
        "architectures": [_QWEN3],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": width,
        "vocab_size": 151_936,
        "max_position_embeddings": 40_960,
        "tie_word_embeddings": is_tied,
    }


_30B: Config = {
    "architectures": [_MOE],
    "num_hidden_layers": 48,
    "hidden_size": 2_048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "moe_intermediate_size": 768,
    "num_experts_per_tok": 8,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
}

MODELS: Mapping[str, Config] = {
    "Qwen/Qwen3-0.6B": _row(28, 1_024, 16, 3_072, is_tied=True),
    "Qwen/Qwen3-1.7B": _row(28, 2_048, 16, 6_144, is_tied=True),
    "Qwen/Qwen3-4B": _row(36, 2_560, 32, 9_728, is_tied=True),
    "Qwen/Qwen3-8B": _row(36, 4_096, 32, 12_288, is_tied=False),
    "Qwen/Qwen3-14B": _row(40, 5_120, 40, 17_408, is_tied=False),
    "Qwen/Qwen3-32B": _row(64, 5_120, 64, 25_600, is_tied=False),
    "Qwen/Qwen3-30B-A3B": _30B,
}
