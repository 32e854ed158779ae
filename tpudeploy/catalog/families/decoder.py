"""What Llama began and others vary: one kind of attention, one feed-forward or its experts, two norms a layer."""

from __future__ import annotations

from tpudeploy.catalog.families.reading import ON_TORCHAX, Config, depth, whole
from tpudeploy.domain.model import Attention, Experts, FeedForward, Implementation, LanguageModel

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
    """The plain form; a family replaces what it varies. Raise NotCovered where a field is missing."""
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
        pads_kv_weights=not on_torchax,
        source=source,
        unverified=(ON_TORCHAX if on_torchax else UNCOMPARED,),
    )
