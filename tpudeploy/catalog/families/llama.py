"""Llama 2 and 3, and models of their shape: plain dense decoders with grouped queries.

Source: litgpt's config.py, each entry of which links its Hugging Face config.json; the sums of parameters are the
published ones (1,235,814,400, 3,212,749,824, 8,030,261,248 and 70,553,706,496). On a chip:
tpu_inference 0.32.0 models/jax/llama3.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog.families.reading import Config, decoder
from tpudeploy.domain.model import LanguageModel, NotCovered

ARCHITECTURES = ("LlamaForCausalLM",)


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for a missing field, or for biases."""
    if config.get("attention_bias") or config.get("mlp_bias"):
        raise NotCovered("its projections have biases, unlike those of Llama")
    return decoder(name, architecture, config, source=__doc__ or "")


def _row(
    layers: int,
    hidden: int,
    heads: int,
    width: int,
    *,
    is_tied: bool = False,
    kv_heads: int = 8,
    vocabulary: int = 128_256,
    length: int = 131_072,
) -> Config:
    return {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": width,
        "vocab_size": vocabulary,
        "max_position_embeddings": length,
        "tie_word_embeddings": is_tied,
    }


def _row2(layers: int, hidden: int, heads: int, width: int, *, kv_heads: int, length: int = 4_096) -> Config:
    """Return a Llama 2, or a model of its shape."""
    return _row(layers, hidden, heads, width, kv_heads=kv_heads, vocabulary=32_000, length=length)


def _falcon(layers: int, hidden: int, heads: int, width: int, *, length: int = 32_768) -> Config:
    return _row(layers, hidden, heads, width, kv_heads=4, vocabulary=131_072, length=length)


def _smol(layers: int, hidden: int, heads: int, width: int) -> Config:
    return _row(layers, hidden, heads, width, is_tied=True, kv_heads=heads // 3, vocabulary=49_152, length=8_192)


# Each shape, and the ids of the checkpoints that have it.
_SHAPES: tuple[tuple[Config, tuple[str, ...]], ...] = (
    (_row2(32, 4_096, 32, 11_008, kv_heads=32), ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-chat-hf")),
    (_row2(40, 5_120, 40, 13_824, kv_heads=40), ("meta-llama/Llama-2-13b-hf", "meta-llama/Llama-2-13b-chat-hf")),
    (_row2(80, 8_192, 64, 28_672, kv_heads=8), ("meta-llama/Llama-2-70b-hf", "meta-llama/Llama-2-70b-chat-hf")),
    (_row2(22, 2_048, 32, 5_632, kv_heads=4, length=2_048), ("TinyLlama/TinyLlama-1.1B-Chat-v1.0",)),
    (
        _row2(48, 8_192, 64, 22_016, kv_heads=8, length=16_384),
        ("codellama/CodeLlama-34b-hf", "codellama/CodeLlama-34b-Instruct-hf"),
    ),
    (
        _row(32, 4_096, 32, 14_336, length=8_192),
        ("meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct"),
    ),
    (
        _row(80, 8_192, 64, 28_672, length=8_192),
        ("meta-llama/Meta-Llama-3-70B", "meta-llama/Meta-Llama-3-70B-Instruct"),
    ),
    (_row(32, 4_096, 32, 14_336), ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct")),
    (
        _row(80, 8_192, 64, 28_672),
        ("meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
    ),
    (_row(126, 16_384, 128, 53_248), ("meta-llama/Llama-3.1-405B", "meta-llama/Llama-3.1-405B-Instruct")),
    (_row(16, 2_048, 32, 8_192, is_tied=True), ("meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B-Instruct")),
    (_row(28, 3_072, 24, 8_192, is_tied=True), ("meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.2-3B-Instruct")),
    (_smol(30, 576, 9, 1_536), ("HuggingFaceTB/SmolLM2-135M", "HuggingFaceTB/SmolLM2-135M-Instruct")),
    (_smol(32, 960, 15, 2_560), ("HuggingFaceTB/SmolLM2-360M", "HuggingFaceTB/SmolLM2-360M-Instruct")),
    (_falcon(18, 2_048, 8, 8_192, length=4_096), ("tiiuae/Falcon3-1B-Base", "tiiuae/Falcon3-1B-Instruct")),
    (_falcon(22, 3_072, 12, 9_216), ("tiiuae/Falcon3-3B-Base", "tiiuae/Falcon3-3B-Instruct")),
    (_falcon(28, 3_072, 12, 23_040), ("tiiuae/Falcon3-7B-Base", "tiiuae/Falcon3-7B-Instruct")),
    (_falcon(40, 3_072, 12, 23_040), ("tiiuae/Falcon3-10B-Base", "tiiuae/Falcon3-10B-Instruct")),
)
MODELS: Mapping[str, Config] = {model_id: shape for shape, model_ids in _SHAPES for model_id in model_ids}
