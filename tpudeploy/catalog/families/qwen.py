"""Qwen 2 and 3: dense decoders with biases (2) or normed heads (3), and Qwen 3's mixture of experts.

Source: litgpt's config.py, each entry of which links its Hugging Face config.json; tied embeddings follow from the
published sums of parameters. Embedding and reranking models are Qwen 3's with a shorter vocabulary (Qwen's technical
report; 151,669 tokens: vLLM's examples/offline_inference/qwen3_reranker.py). On a chip: tpu_inference 0.32.0
models/jax/qwen2.py and qwen3.py; the mixture of experts runs through torchax (models/common/model_loader.py,
_VLLM_PREFERRED_ARCHITECTURES).
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
    plain = replace(plain, is_head_whole=experts is None)
    if architecture == _QWEN2:
        return replace(plain, attention=(replace(attention, has_bias=True),))
    return replace(plain, norms=plain.norms + 2 * attention.head_dim * layers)  # queries and keys are normed too


def _experts(config: Config, layers: int) -> Experts:
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step") not in (None, 1):
        raise NotCovered("some of its layers have no experts (`mlp_only_layers`, `decoder_sparse_step`)")
    width = whole(config, "moe_intermediate_size")
    each = whole(config, "num_experts_per_tok", 1)
    return Experts(layers=layers, count=whole(config, "num_experts"), width=width, per_token=each)


def _row(
    layers: int,
    hidden: int,
    heads: int,
    width: int,
    *,
    is_tied: bool,
    vocabulary: int = 151_936,
    length: int = 40_960,
) -> Config:
    return {
        "architectures": [_QWEN3],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": width,
        "vocab_size": vocabulary,
        "max_position_embeddings": length,
        "tie_word_embeddings": is_tied,
    }


def _row2(layers: int, hidden: int, heads: int, kv_heads: int, width: int, *, length: int = 32_768) -> Config:
    """Return a Qwen 2.5: the small ones are tied, and the large ones pad the vocabulary further."""
    is_small = layers * hidden < _UNTIED_FROM
    return {
        "architectures": [_QWEN2],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": width,
        "vocab_size": 151_936 if is_small else 152_064,
        "max_position_embeddings": length,
        "tie_word_embeddings": is_small,
    }


def _moe_row(layers: int, hidden: int, heads: int, **fields: int) -> Config:
    return {
        "architectures": [_MOE],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "head_dim": 128,
        "num_experts_per_tok": 8,
        "vocab_size": 151_936,
        **fields,
    }


_30B = _moe_row(
    48,
    2_048,
    32,
    num_key_value_heads=4,
    num_experts=128,
    moe_intermediate_size=768,
    max_position_embeddings=40_960,
)
# Qwen's own figures, as training scripts that others published repeat them; the sum of parameters, 235.1 billion,
# agrees with the name. The context of the 2507 versions is that of their model cards (unverified).
_235B = _moe_row(
    94,
    4_096,
    64,
    num_key_value_heads=4,
    num_experts=128,
    moe_intermediate_size=1_536,
    max_position_embeddings=40_960,
)
# 160 experts of width 2,560 are from memory (unverified); with them the sum is 480.2 billion parameters.
_480B = _moe_row(
    62,
    6_144,
    96,
    num_key_value_heads=8,
    num_experts=160,
    moe_intermediate_size=2_560,
    max_position_embeddings=262_144,
)

_UNTIED_FROM = 28 * 3_584  # layers x hidden of 7B, the smallest with an output table of its own
_2507 = 262_144  # the context of those versions, as on their model cards
_05, _15, _3 = (24, 896, 14, 2, 4_864), (28, 1_536, 12, 2, 8_960), (36, 2_048, 16, 2, 11_008)
_7, _14 = (28, 3_584, 28, 4, 18_944), (48, 5_120, 40, 8, 13_824)
_32, _72 = (64, 5_120, 40, 8, 27_648), (80, 8_192, 64, 8, 29_568)
# The base models of 7B and more, and those of 1.5B, were trained on longer texts than their chat versions are set to.
_LONG = 131_072

MODELS: Mapping[str, Config] = {
    "Qwen/Qwen2.5-0.5B": _row2(*_05),
    "Qwen/Qwen2.5-0.5B-Instruct": _row2(*_05),
    "Qwen/Qwen2.5-1.5B": _row2(*_15, length=_LONG),
    "Qwen/Qwen2.5-1.5B-Instruct": _row2(*_15),
    "Qwen/Qwen2.5-3B": _row2(*_3),
    "Qwen/Qwen2.5-3B-Instruct": _row2(*_3),
    "Qwen/Qwen2.5-7B": _row2(*_7, length=_LONG),
    "Qwen/Qwen2.5-7B-Instruct": _row2(*_7),
    "Qwen/Qwen2.5-14B": _row2(*_14, length=_LONG),
    "Qwen/Qwen2.5-14B-Instruct": _row2(*_14),
    "Qwen/Qwen2.5-32B": _row2(*_32, length=_LONG),
    "Qwen/Qwen2.5-32B-Instruct": _row2(*_32),
    "Qwen/Qwen2.5-72B": _row2(*_72, length=_LONG),
    "Qwen/Qwen2.5-72B-Instruct": _row2(*_72),
    "Qwen/Qwen2.5-7B-Instruct-1M": _row2(*_7, length=1_010_000),
    "Qwen/Qwen2.5-14B-Instruct-1M": _row2(*_14, length=1_010_000),
    "Qwen/Qwen2.5-Coder-0.5B": _row2(*_05),
    "Qwen/Qwen2.5-Coder-0.5B-Instruct": _row2(*_05),
    "Qwen/Qwen2.5-Coder-1.5B": _row2(*_15),
    "Qwen/Qwen2.5-Coder-1.5B-Instruct": _row2(*_15),
    "Qwen/Qwen2.5-Coder-3B": _row2(*_3),
    "Qwen/Qwen2.5-Coder-3B-Instruct": _row2(*_3),
    "Qwen/Qwen2.5-Coder-7B": _row2(*_7),
    "Qwen/Qwen2.5-Coder-7B-Instruct": _row2(*_7),
    "Qwen/Qwen2.5-Coder-14B": _row2(*_14),
    "Qwen/Qwen2.5-Coder-14B-Instruct": _row2(*_14),
    "Qwen/Qwen2.5-Coder-32B": _row2(*_32),
    "Qwen/Qwen2.5-Coder-32B-Instruct": _row2(*_32),
    "Qwen/Qwen2.5-Math-1.5B": _row2(*_15, length=4_096),
    "Qwen/Qwen2.5-Math-1.5B-Instruct": _row2(*_15, length=4_096),
    "Qwen/Qwen2.5-Math-7B": _row2(*_7, length=4_096),
    "Qwen/Qwen2.5-Math-7B-Instruct": _row2(*_7, length=4_096),
    "Qwen/Qwen2.5-Math-72B": _row2(*_72, length=4_096),
    "Qwen/Qwen2.5-Math-72B-Instruct": _row2(*_72, length=4_096),
    "Qwen/QwQ-32B": _row2(*_32, length=_LONG),
    "Qwen/QwQ-32B-Preview": _row2(*_32),
    # Its output table is its own, unlike that of the model it was tuned from (1.78 billion parameters).
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": {**_row2(*_15, length=_LONG), "tie_word_embeddings": False},
    "Qwen/Qwen3-0.6B": _row(28, 1_024, 16, 3_072, is_tied=True),
    "Qwen/Qwen3-1.7B": _row(28, 2_048, 16, 6_144, is_tied=True),
    "Qwen/Qwen3-4B": _row(36, 2_560, 32, 9_728, is_tied=True),
    "Qwen/Qwen3-4B-Instruct-2507": _row(36, 2_560, 32, 9_728, is_tied=True, length=_2507),
    "Qwen/Qwen3-4B-Thinking-2507": _row(36, 2_560, 32, 9_728, is_tied=True, length=_2507),
    "Qwen/Qwen3-8B": _row(36, 4_096, 32, 12_288, is_tied=False),
    "Qwen/Qwen3-14B": _row(40, 5_120, 40, 17_408, is_tied=False),
    "Qwen/Qwen3-32B": _row(64, 5_120, 64, 25_600, is_tied=False),
    # The length of the base models is from memory (unverified).
    "Qwen/Qwen3-0.6B-Base": _row(28, 1_024, 16, 3_072, is_tied=True, length=32_768),
    "Qwen/Qwen3-1.7B-Base": _row(28, 2_048, 16, 6_144, is_tied=True, length=32_768),
    "Qwen/Qwen3-4B-Base": _row(36, 2_560, 32, 9_728, is_tied=True, length=32_768),
    "Qwen/Qwen3-8B-Base": _row(36, 4_096, 32, 12_288, is_tied=False, length=32_768),
    "Qwen/Qwen3-14B-Base": _row(40, 5_120, 40, 17_408, is_tied=False, length=32_768),
    "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": _row(36, 4_096, 32, 12_288, is_tied=False, length=_LONG),
    "Qwen/Qwen3-Embedding-0.6B": _row(28, 1_024, 16, 3_072, is_tied=True, vocabulary=151_669, length=32_768),
    "Qwen/Qwen3-Embedding-4B": _row(36, 2_560, 32, 9_728, is_tied=True, vocabulary=151_665),
    "Qwen/Qwen3-Embedding-8B": _row(36, 4_096, 32, 12_288, is_tied=False, vocabulary=151_665),
    "Qwen/Qwen3-Reranker-0.6B": _row(28, 1_024, 16, 3_072, is_tied=True, vocabulary=151_669),
    "Qwen/Qwen3-Reranker-4B": _row(36, 2_560, 32, 9_728, is_tied=True, vocabulary=151_669),
    "Qwen/Qwen3-Reranker-8B": _row(36, 4_096, 32, 12_288, is_tied=False, vocabulary=151_669),
    "Qwen/Qwen3-30B-A3B": _30B,
    "Qwen/Qwen3-30B-A3B-Base": {**_30B, "max_position_embeddings": 32_768},
    "Qwen/Qwen3-30B-A3B-Instruct-2507": {**_30B, "max_position_embeddings": _2507},
    "Qwen/Qwen3-30B-A3B-Thinking-2507": {**_30B, "max_position_embeddings": _2507},
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": {**_30B, "max_position_embeddings": _2507},
    "Qwen/Qwen3-235B-A22B": _235B,
    "Qwen/Qwen3-235B-A22B-Instruct-2507": {**_235B, "max_position_embeddings": _2507},
    "Qwen/Qwen3-235B-A22B-Thinking-2507": {**_235B, "max_position_embeddings": _2507},
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": _480B,
}
