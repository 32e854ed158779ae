"""Gemma 3: five layers with a window to one without, all heads alike, run by vLLM's code through torchax.

Source: transformers' convert_gemma3_weights.py (`_VARIANTS`, commit 0d7e95d); the multimodal checkpoints' vocabulary is
64 larger than the tokenizer's, for the image tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog.families.reading import ON_TORCHAX, Config, depth, layer_kinds, text, whole
from tpudeploy.domain.model import Attention, FeedForward, Implementation, LanguageModel, Vision

ARCHITECTURES = ("Gemma3ForConditionalGeneration", "Gemma3ForCausalLM")

_FULL, _SLIDING = "full_attention", "sliding_attention"
_ITEMS = {"image": 256}  # mm_tokens_per_image


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for a missing field."""
    part = text(config)
    layers, hidden = depth(part), whole(part, "hidden_size")
    every = whole(part, "sliding_window_pattern", 6)
    kinds = layer_kinds(part, (_FULL, _SLIDING), layers=layers) or tuple(
        _SLIDING if (i + 1) % every else _FULL for i in range(layers)
    )
    sees = "Conditional" in architecture
    attention = tuple(_attention(part, kinds, kind) for kind in (_SLIDING, _FULL) if kind in kinds)
    return LanguageModel(
        name=name,
        architecture=architecture,
        implementation=Implementation.TORCHAX,
        layers=layers,
        hidden=hidden,
        vocabulary=whole(part, "vocab_size", 262_208),
        is_tied=part.get("tie_word_embeddings", True) is not False,
        max_position=whole(part, "max_position_embeddings", 131_072),
        attention=attention,
        feed_forward=(FeedForward(layers=layers, width=whole(part, "intermediate_size")),),
        norms=layers * 4 * hidden + sum(2 * kind.head_dim * kind.layers for kind in attention) + hidden,
        vision=_vision(config, hidden) if sees else None,
        pads_kv_weights=True,
        is_prefix_lm=sees,
        item_tokens=_ITEMS if sees else {},
        source=__doc__ or "",
        unverified=(
            ON_TORCHAX,
            "its layers with a window are cached apart from the others: no boot measured",
        ),
    )


def _attention(part: Config, kinds: tuple[str, ...], kind: str) -> Attention:
    return Attention(
        layers=kinds.count(kind),
        cached=kinds.count(kind),
        heads=whole(part, "num_attention_heads", 8),
        kv_heads=whole(part, "num_key_value_heads", 4),
        head_dim=whole(part, "head_dim", 256),
        window=None if kind == _FULL else whole(part, "sliding_window", 4_096),
    )


def _vision(config: Config, hidden: int) -> Vision:
    """Return SigLIP: biased projections in its layers; patches, positions and the projector beside them.

    torchax splits the attention alone: on several chips, the engine's own loader keeps the rest whole on each.
    """
    part = config.get("vision_config") or {}
    size, width = whole(part, "hidden_size", 1_152), whole(part, "intermediate_size", 4_304)
    patch = whole(part, "patch_size", 14)
    layers = whole(part, "num_hidden_layers", 27)
    attention, rest = 4 * size * size + 3 * size, 2 * size * width + width + 6 * size
    positions = (whole(part, "image_size", 896) // patch) ** 2 * size
    beside = 3 * patch**2 * size + size + positions + 2 * size + size + size * hidden
    heads = whole(part, "num_attention_heads", 16)
    return Vision(heads=heads, split=layers * attention, replicated=layers * rest + beside)


_1B: Config = {
    "architectures": ["Gemma3ForCausalLM"],
    "hidden_size": 1_152,
    "intermediate_size": 6_912,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "sliding_window": 512,
    "vocab_size": 262_144,
    "max_position_embeddings": 32_768,
}


def _multimodal(shape: Config) -> Config:
    part = {"sliding_window": 1_024, "head_dim": 256, **shape}
    return {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": part, "vision_config": {}}


_4B = _multimodal(
    {
        "hidden_size": 2_560,
        "intermediate_size": 10_240,
        "num_hidden_layers": 34,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
    }
)
_12B = _multimodal(
    {
        "hidden_size": 3_840,
        "intermediate_size": 15_360,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
    }
)
_27B = _multimodal(
    {
        "hidden_size": 5_376,
        "intermediate_size": 21_504,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
    }
)

MODELS: Mapping[str, Config] = {
    "google/gemma-3-1b-pt": _1B,
    "google/gemma-3-1b-it": _1B,
    "google/gemma-3-4b-pt": _4B,
    "google/gemma-3-4b-it": _4B,
    "google/gemma-3-12b-pt": _12B,
    "google/gemma-3-12b-it": _12B,
    "google/gemma-3-27b-pt": _27B,
    "google/gemma-3-27b-it": _27B,
}
