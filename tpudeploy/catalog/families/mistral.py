"""Mistral and Mixtral, for `model.config` alone: dense and mixture-of-experts decoders that torchax runs."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog.families.reading import Config, depth, whole
from tpudeploy.domain.model import Attention, Experts, FeedForward, Implementation, LanguageModel

_MIXTRAL = "MixtralForCausalLM"
ARCHITECTURES = ("MistralForCausalLM", _MIXTRAL)
MODELS: Mapping[str, Config] = {}


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Raise NotCovered where a field is missing."""
    layers, hidden = depth(config), whole(config, "hidden_size")
    heads, width = whole(config, "num_attention_heads"), whole(config, "intermediate_size")
    window = config.get("sliding_window")
    experts = None
    if architecture == _MIXTRAL:
        experts = Experts(layers=layers, count=whole(config, "num_local_experts"), width=width)
    return LanguageModel(
        name=name,
        architecture=architecture,
        implementation=Implementation.TORCHAX,
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
                window=None if window is None else whole(config, "sliding_window"),
            ),
        ),
        feed_forward=() if experts else (FeedForward(layers=layers, width=width),),
        experts=experts,
        norms=(2 * layers + 1) * hidden,
        source=__doc__ or "",
        unverified=("runs through torchax: how its weights are spread over chips is not verified",),
    )
