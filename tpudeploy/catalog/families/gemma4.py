"""Gemma 4: two kinds of attention heads, KV-shared layers, per-layer embeddings, one dense-and-MoE model.

Sources: transformers' convert_gemma4_weights.py (`_VARIANTS`, commit 0f3f0632) and, for 12B,
convert_gemma4_unified_weights.py (commit 05babaa3); what lies where on a chip: tpu_inference 0.32.0
models/jax/gemma4.py and gemma4_mm.py. Their sum equals `nnx.eval_shape` of the real classes to the byte, but for 26B's
routers: declared in float32, they become what the checkpoint holds (weight_utils.py, assign_and_shard_param).
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog.families.reading import ON_TORCHAX, Config, count, depth, layer_kinds, text, whole
from tpudeploy.domain.model import (
    Attention,
    Experts,
    FeedForward,
    Implementation,
    LanguageModel,
    NotCovered,
    Vision,
)

ARCHITECTURES = (
    "Gemma4ForConditionalGeneration",
    "Gemma4ForCausalLM",
    "Gemma4UnifiedForConditionalGeneration",
    "Gemma4UnifiedForCausalLM",
)

_FULL, _SLIDING = "full_attention", "sliding_attention"
_KV_HEADS, _GLOBAL_KV_HEADS = "num_key_value_heads", "num_global_key_value_heads"
# vLLM 0.32.0 models/gemma4_mm.py: an image is 280 tokens by default; a video 32 frames of 70 + 2 + 6.
_ITEMS = {"image": 280, "video": 32 * (70 + 2 + 6)}
# Gemma4UnifiedVisionConfig: patches of (16 x 3)^2 x 3 values, 1,120 positions along two axes.
_UNIFIED_PATCH, _UNIFIED_POSITIONS, _UNIFIED_AUDIO = 6_912, 1_120, 640
# Audio tower and embedder in parameters: in the checkpoint, not loaded on TPU (gemma4_mm.py load_weights).
_AUDIO_TOWER = 307_200_000


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for a missing field."""
    part = text(config)
    layers, hidden = depth(part), whole(part, "hidden_size")
    kinds = layer_kinds(part, (_FULL, _SLIDING), layers=layers) or _pattern(layers, every=6)
    shared = count(part, "num_kv_shared_layers")
    if shared >= layers:
        raise NotCovered(f"{shared} of its {layers} layers read another's cache (`num_kv_shared_layers`)")
    # The default of Gemma4TextConfig is 256; models without per-layer embeddings have 0.
    ple = count({"hidden_size_per_layer_input": 256, **part}, "hidden_size_per_layer_input")
    experts = _experts(part, layers)
    attention = tuple(_attention(part, kinds, kind, shared) for kind in (_SLIDING, _FULL) if kind in kinds)
    is_unified, sees = "Unified" in architecture, "Conditional" in architecture
    unverified = []
    if is_unified:
        unverified.append(ON_TORCHAX)
    if experts is not None:
        unverified.append("the padding of expert weights is computed, not measured")
        # tpu_inference's own CI: .buildkite/models/google_gemma-4-26B-A4B-it.yml, a TODO on issue 2333.
        unverified.append("what loading takes on top is not modelled: upstream tests call v6e-8 too small for 26B")
    return LanguageModel(
        name=name,
        architecture=architecture,
        implementation=Implementation.TORCHAX if is_unified else Implementation.JAX,
        layers=layers,
        hidden=hidden,
        vocabulary=whole(part, "vocab_size", 262_144),
        is_tied=config.get("tie_word_embeddings", part.get("tie_word_embeddings", True)) is not False,
        max_position=whole(part, "max_position_embeddings", 262_144 if is_unified else 131_072),
        attention=attention,
        feed_forward=_feed_forward(part, layers, shared),
        experts=experts,
        per_layer_width=ple,
        norms=_norms(layers, hidden, attention, ple, experts),
        vision=_vision(config, hidden, is_unified=is_unified) if sees else None,
        unloaded=_AUDIO_TOWER if config.get("audio_config") is not None and not is_unified else 0,
        is_prefix_lm=part.get("use_bidirectional_attention") == "vision",
        item_tokens=_ITEMS if sees else {},
        source=__doc__ or "",
        unverified=tuple(unverified),
    )


def _pattern(layers: int, *, every: int) -> tuple[str, ...]:
    return tuple(_SLIDING if (i + 1) % every else _FULL for i in range(layers))


def _attention(part: Config, kinds: tuple[str, ...], kind: str, shared: int) -> Attention:
    is_full = kind == _FULL
    # Keys serve as values, and fewer KV heads, on full layers only (gemma4.py; utils.get_layer_kv_params).
    merges = is_full and bool(part.get("attention_k_eq_v"))
    heads, dim = whole(part, _KV_HEADS, 4), whole(part, "head_dim", 256)
    own = _overrides(part, kinds.index(kind))
    layer = {**part, **own}
    if merges:
        heads = whole(layer, _KV_HEADS if own else _GLOBAL_KV_HEADS, heads)
    if is_full:
        dim = whole(layer, "head_dim" if own else "global_head_dim", 512)
    return Attention(
        layers=kinds.count(kind),
        cached=kinds[: len(kinds) - shared].count(kind),
        heads=whole(part, "num_attention_heads"),
        kv_heads=heads,
        head_dim=dim,
        window=None if is_full else whole(part, "sliding_window", 512),
        projections=1 if merges else 2,
    )


def _overrides(part: Config, layer: int) -> Config:
    """Return the fields of one layer, which transformers 5.15 and later write under its number ("05")."""
    tree = part.get("per_layer_config") or {}
    return next((own for number, own in tree.items() if int(number) == layer), {})


def _feed_forward(part: Config, layers: int, shared: int) -> tuple[FeedForward, ...]:
    """Return the feed-forward parts. Layers that share a cache may be twice as wide (gemma4.py)."""
    width = whole(part, "intermediate_size")
    doubled = shared if part.get("use_double_wide_mlp") else 0
    plain = FeedForward(layers=layers - doubled, width=width)
    return (plain, FeedForward(layers=doubled, width=2 * width)) if doubled else (plain,)


def _experts(part: Config, layers: int) -> Experts | None:
    if not part.get("enable_moe_block"):
        return None
    experts, width = whole(part, "num_experts"), whole(part, "moe_intermediate_size")
    return Experts(layers=layers, count=experts, width=width, per_token=whole(part, "top_k_experts", 1))


def _norms(layers: int, hidden: int, attention: tuple[Attention, ...], ple: int, experts: Experts | None) -> int:
    """Return the parameters of four norms and a scalar per layer, query and key norms, routers, and the last norm."""
    each = 4 * hidden + 1 + (hidden if ple else 0) + (4 * hidden + experts.count if experts else 0)
    return layers * each + sum(2 * kind.head_dim * kind.layers for kind in attention) + ple + hidden


def _vision(config: Config, hidden: int, *, is_unified: bool) -> Vision:
    if is_unified:
        return _embedder(hidden)
    part = config.get("vision_config") or {}
    size, layers = whole(part, "hidden_size", 768), whole(part, "num_hidden_layers", 16)
    heads, width = whole(part, "num_attention_heads", 12), whole(part, "intermediate_size", 3_072)
    patch = 3 * whole(part, "patch_size", 16) ** 2
    # gemma4_mm.py: heads and widths are split; the table of positions and the norms are whole on each chip.
    split = patch * size + layers * (4 * size * size + 3 * size * width) + size * hidden
    positions = 2 * whole(part, "position_embedding_size", 10_240) * size
    norms = layers * (4 * size + 2 * (size // heads)) + (2 * size if part.get("standardize") else 0)
    return Vision(heads=heads, split=split, replicated=positions + norms)


def _embedder(hidden: int) -> Vision:
    """Return the parts of 12B, which has no tower: a patch projection, norms, positions, image and audio."""
    patch = _UNIFIED_PATCH * hidden + hidden + 2 * _UNIFIED_PATCH + 4 * hidden
    positions = 2 * _UNIFIED_POSITIONS * hidden
    return Vision(heads=1, split=0, replicated=patch + positions + hidden * hidden + _UNIFIED_AUDIO * hidden)


_SMALL_VISION: Config = {"hidden_size": 768, "num_hidden_layers": 16, "num_attention_heads": 12}
_LARGE_VISION: Config = {
    "hidden_size": 1_152,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "intermediate_size": 4_304,
    "standardize": True,
}
_LARGE: Config = {
    "hidden_size_per_layer_input": 0,
    "attention_k_eq_v": True,
    "use_bidirectional_attention": "vision",
    "sliding_window": 1_024,
    "max_position_embeddings": 262_144,
}
_E2B: Config = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        "hidden_size": 1_536,
        "hidden_size_per_layer_input": 256,
        "intermediate_size": 6_144,
        "num_hidden_layers": 35,
        "layer_types": _pattern(35, every=5),
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "num_kv_shared_layers": 20,
        "use_double_wide_mlp": True,
    },
    "vision_config": _SMALL_VISION,
    "audio_config": {},
}
_E4B: Config = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        "hidden_size": 2_560,
        "hidden_size_per_layer_input": 256,
        "intermediate_size": 10_240,
        "num_hidden_layers": 42,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "num_kv_shared_layers": 18,
    },
    "vision_config": _SMALL_VISION,
    "audio_config": {},
}
_12B: Config = {
    "architectures": ["Gemma4UnifiedForConditionalGeneration"],
    "text_config": {
        **_LARGE,
        "hidden_size": 3_840,
        "intermediate_size": 15_360,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 1,
    },
}
_26B: Config = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        **_LARGE,
        "hidden_size": 2_816,
        "intermediate_size": 2_112,
        "num_hidden_layers": 30,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "enable_moe_block": True,
        "num_experts": 128,
        "moe_intermediate_size": 704,
        "top_k_experts": 8,
    },
    "vision_config": _LARGE_VISION,
}
_31B: Config = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        **_LARGE,
        "hidden_size": 5_376,
        "intermediate_size": 21_504,
        "num_hidden_layers": 60,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "num_global_key_value_heads": 4,
    },
    "vision_config": _LARGE_VISION,
}

MODELS: Mapping[str, Config] = {
    "google/gemma-4-E2B": _E2B,
    "google/gemma-4-E2B-it": _E2B,
    "google/gemma-4-E4B": _E4B,
    "google/gemma-4-E4B-it": _E4B,
    "google/gemma-4-12B": _12B,
    "google/gemma-4-12B-it": _12B,
    "google/gemma-4-26B-A4B": _26B,
    "google/gemma-4-26B-A4B-it": _26B,
    "google/gemma-4-31B": _31B,
    "google/gemma-4-31B-it": _31B,
}
