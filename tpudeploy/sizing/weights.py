"""Weights on one chip, by parameter group, with the sharding that tpu_inference really uses.

An element split over `tensor_parallel` chips counts once a chip, one that is replicated counts whole. Sources:
tpu_inference 0.32.0 models/jax/{gemma4,gemma4_mm,llama3,qwen2,qwen3}.py, layers/common/process_weights and
layers/vllm/process_weights. The engine's own loader, with arrays that are descriptions, was asked about models of each
family, on 1, 2, 4 and 8 chips: the sums are its own, but for counters of at most 16 KiB. Gemma 4's 12B it splits 0.2 %
larger; E2B takes 9,631,988,294 at TP 1, 2,494,036,550 at 4 and 1,304,377,926 at 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.model import Attention, Experts, Implementation, LanguageModel
from tpudeploy.sizing.numbers import LANES, align, itemsize, padded_head_dim

_SCALES = 16  # bytes a layer: those of queries, keys, values and probabilities
_CHECKPOINT_BYTES = 2  # of a parameter that is not quantized
# The groups that a quantized checkpoint has in fewer bits.
_LINEAR = ("attention", "feed_forward", "experts")


def weights_bytes_per_chip(model: LanguageModel, engine: EngineSettings) -> Mapping[str, int]:
    """Return the bytes of each parameter group on one chip, without the groups that the model does not have.

    Of a model with the engine's answer, all are one group.
    """
    if model.answer is not None:
        return {"weights": model.answer.weights[engine.tensor_parallel]}
    size, chips = itemsize(engine.dtype), engine.tensor_parallel
    linear = itemsize(model.linear_dtype or engine.dtype)
    experts = model.experts
    elements = {
        "embeddings": _embeddings(model, chips) + _second_table(model, chips),
        "attention": sum(_attention(model, _padded(model, kind), chips) for kind in model.attention),
        # gate, up and down: 3 x hidden x width, split by width.
        "feed_forward": sum(3 * model.hidden * part.width // chips * part.layers for part in model.feed_forward),
        "experts": 0 if experts is None else _experts(model, experts, engine),
        # hidden x experts a layer, whole on each chip, so that all route alike.
        "routers": 0 if experts is None else experts.layers * model.hidden * experts.count,
        "per_layer_inputs": _per_layer_inputs(model),
        "norms": model.norms,
        "vision": _vision(model, engine),
    }
    sizes = {group: count * (linear if group in _LINEAR else size) for group, count in elements.items()}
    return {group: count for group, count in {**sizes, "buffers": _buffers(model, size)}.items() if count}


def checkpoint_bytes(model: LanguageModel) -> int:
    """Return the size of the files: two bytes a parameter, with what no chip loads. E2B: 9.54 GiB, as logged."""
    if model.answer is not None:
        return model.answer.checkpoint_bytes
    experts = model.experts
    linear = sum(_attention(model, kind, 1) for kind in model.attention)
    linear += sum(3 * model.hidden * part.width * part.layers for part in model.feed_forward)
    linear += 0 if experts is None else experts.layers * experts.count * model.hidden * 3 * experts.width
    saved = _CHECKPOINT_BYTES - itemsize(model.linear_dtype) if model.linear_dtype else 0
    return _CHECKPOINT_BYTES * parameters(model) - saved * linear


def least_bytes(model: LanguageModel) -> int:
    """Return what every engine has to load, each element once: without a vision tower, which a flag may leave out."""
    return checkpoint_bytes(replace(model, vision=None, unloaded=0))


def parameters(model: LanguageModel) -> int:
    """Return the elements of the checkpoint, without the padding of a chip and with what no chip loads."""
    if model.answer is not None:
        return model.answer.parameters
    experts = model.experts
    each = 0 if experts is None else experts.count * model.hidden * (3 * experts.width + 1)
    return sum(
        (
            _embeddings(model, 1),
            sum(_attention(model, kind, 1) for kind in model.attention),
            sum(3 * model.hidden * part.width * part.layers for part in model.feed_forward),
            0 if experts is None else experts.layers * each,
            _per_layer_inputs(model),
            model.norms,
            0 if model.vision is None else model.vision.split + model.vision.replicated,
            model.unloaded,
        )
    )


def active_parameters(model: LanguageModel) -> int:
    """Return the elements that every token is multiplied with in the layers: of the experts, those it goes through.

    Tables are looked up, not multiplied with; the output's is `head_parameters`, which prompts need but once.
    """
    if model.answer is not None:
        return model.answer.active
    experts = model.experts
    each = 0 if experts is None else model.hidden * (experts.count + 3 * experts.per_token * experts.width)
    return sum(
        (
            sum(_attention(model, kind, 1) - _unused(model, kind) for kind in model.attention),
            sum(3 * model.hidden * part.width * part.layers for part in model.feed_forward),
            0 if experts is None else experts.layers * each,
            _per_layer_inputs(model),
        )
    )


def head_parameters(model: LanguageModel) -> int:
    """Return the elements that each new token takes to be chosen."""
    return model.vocabulary * model.hidden


def _embeddings(model: LanguageModel, chips: int) -> int:
    """Return the tables, split by padded vocabulary: input, output unless tied, per layer (gemma4.py).

    The output table of Qwen's classes has no sharding: each chip has all of it (layers/jax/linear.py, JaxLmHead).
    """
    vocabulary = align(model.vocabulary, chips)
    head = 0 if model.is_tied else vocabulary * model.hidden
    split = vocabulary * (model.hidden + model.per_layer_width * model.layers)
    return split // chips + head // (1 if model.is_head_whole else chips)


def _second_table(model: LanguageModel, chips: int) -> int:
    """Return a table that is input and output at once: through torchax it becomes two arrays (cleanup_sharding.py)."""
    is_two = model.is_tied and model.implementation is Implementation.TORCHAX
    return align(model.vocabulary, chips) * model.hidden // chips if is_two else 0


def _buffers(model: LanguageModel, size: int) -> int:
    """Return the bytes of what torchax keeps beside the weights: positions of each kind of layer, scales of each layer.

    tpu_inference's own classes compute both.
    """
    if model.implementation is not Implementation.TORCHAX:
        return 0
    positions = sum(model.max_position * kind.head_dim for kind in model.attention)
    return size * positions + _SCALES * model.layers


def _unused(model: LanguageModel, kind: Attention) -> int:
    """Return the keys and values of layers that read another's: loaded, and never multiplied with."""
    return (kind.layers - kind.cached) * model.hidden * kind.projections * kind.kv_heads * kind.head_dim


def _padded(model: LanguageModel, kind: Attention) -> Attention:
    """Return the heads as loaded: tpu_inference pads them as those of the cache (llama3.py, gemma4.py)."""
    if model.implementation is not Implementation.JAX:
        return kind
    return replace(kind, head_dim=padded_head_dim(kind.head_dim))


def _attention(model: LanguageModel, kind: Attention, chips: int) -> int:
    """Return Q and O, split by heads; K and V by KV heads, copied or split if there are fewer heads than chips."""
    queries = kind.heads * kind.head_dim // chips
    if model.pads_kv_weights:
        keys = max(kind.kv_heads // chips, 1) * kind.head_dim  # llama3.py: heads are padded to the chips
    else:
        keys = kind.kv_heads * kind.head_dim // chips  # gemma4.py: else split by head_dim
    bias = queries + kind.projections * keys if kind.has_bias else 0
    return kind.layers * (model.hidden * (2 * queries + kind.projections * keys) + bias)


def _experts(model: LanguageModel, experts: Experts, engine: EngineSettings) -> int:
    """Return the experts: gate and up are padded to whole lanes, a shard each or, with experts split, an expert each.

    moe_weights.py, get_w13_padding_config. 26B at TP 4: 704 / 4 = 176 becomes 256.
    """
    chips, width = engine.tensor_parallel, experts.width
    if engine.is_expert_parallel:
        count = experts.count // chips
        return experts.layers * count * model.hidden * (2 * align(width, LANES) + width)
    shard = width // chips
    return experts.layers * experts.count * model.hidden * (2 * align(shard, LANES) + shard)


def _per_layer_inputs(model: LanguageModel) -> int:
    """Return gate and projection of each layer and that of all, whole on each chip (gemma4.py)."""
    return 3 * model.layers * model.hidden * model.per_layer_width


def _vision(model: LanguageModel, engine: EngineSettings) -> int:
    """Return the tower: loaded even if all modalities are limited to zero; `mm-encoder-tp-mode: data` copies it."""
    if model.vision is None:
        return 0
    shards = 1 if engine.is_vision_replicated else engine.tensor_parallel
    return model.vision.split // shards + model.vision.replicated
