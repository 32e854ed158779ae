"""Llama 3: plain dense decoders with grouped queries.

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


def _row(layers: int, hidden: int, heads: int, width: int, *, is_tied: bool = False) -> Config:
    return {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "intermediate_size": width,
        "vocab_size": 128_256,
        "max_position_embeddings": 131_072,
        "tie_word_embeddings": is_tied,
    }


_1B = _row(16, 2_048, 32, 8_192, is_tied=True)
_3B = _row(28, 3_072, 24, 8_192, is_tied=True)
_8B = _row(32, 4_096, 32, 14_336)
_70B = _row(80, 8_192, 64, 28_672)

MODELS: Mapping[str, Config] = {
    "meta-llama/Llama-3.1-8B": _8B,
    "meta-llama/Llama-3.1-8B-Instruct": _8B,
    "meta-llama/Llama-3.1-70B": _70B,
    "meta-llama/Llama-3.1-70B-Instruct": _70B,
    "meta-llama/Llama-3.2-1B": _1B,
    "meta-llama/Llama-3.2-1B-Instruct": _1B,
    "meta-llama/Llama-3.2-3B": _3B,
    "meta-llama/Llama-3.2-3B-Instruct": _3B,
    "meta-llama/Llama-3.3-70B-Instruct": _70B,
}
