"""Llama 3: plain dense decoders with grouped queries.

Source: litgpt's config.py, each entry of which links its Hugging Face config.json; the sums of parameters are the
published ones (8,030,261,248 and 70,553,706,496). On a chip: tpu_inference 0.32.0 models/jax/llama3.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog.families.reading import Config, depth, whole
from tpudeploy.domain.model import Attention, FeedForward, Implementation, LanguageModel, NotCovered

ARCHITECTURES = ("LlamaForCausalLM",)


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Raise NotCovered where a field is missing, or biases are there."""
    if config.get("attention_bias") or config.get("mlp_bias"):
        raise NotCovered("its projections have biases, which Llama's have not")
    layers, hidden = depth(config), whole(config, "hidden_size")
    heads = whole(config, "num_attention_heads")
    return LanguageModel(
        name=name,
        architecture=architecture,
        implementation=Implementation.JAX,
        layers=layers,
        hidden=hidden,
        vocabulary=whole(config, "vocab_size"),
        is_tied=bool(config.get("tie_word_embeddings")),
        max_position=whole(config, "max_position_embeddings"),
        attention=(
            Attention(
                layers=layers,
                cached=layers,
                heads=heads,
                kv_heads=whole(config, "num_key_value_heads", heads),
                head_dim=whole(config, "head_dim", hidden // heads),
            ),
        ),
        feed_forward=(FeedForward(layers=layers, width=whole(config, "intermediate_size")),),
        norms=(2 * layers + 1) * hidden,
        pads_kv_weights=True,
        source=__doc__ or "",
        unverified=("weights: what lies on a chip is read from the source, not compared with a boot",),
    )


def _row(layers: int, hidden: int, heads: int, width: int) -> Config:
    return {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "intermediate_size": width,
        "vocab_size": 128_256,
        "max_position_embeddings": 131_072,
    }


_8B = _row(32, 4_096, 32, 14_336)
_70B = _row(80, 8_192, 64, 28_672)

MODELS: Mapping[str, Config] = {
    "meta-llama/Llama-3.1-8B": _8B,
    "meta-llama/Llama-3.1-8B-Instruct": _8B,
    "meta-llama/Llama-3.1-70B": _70B,
    "meta-llama/Llama-3.1-70B-Instruct": _70B,
    "meta-llama/Llama-3.3-70B-Instruct": _70B,
}
