"""Define LanguageModel: the dimensions of a decoder. catalog/families has the models and reads their configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class NotCovered(ValueError):
    """The arithmetic does not cover this model; the message is the clause after "cannot size this, because"."""


class PartlyCovered(NotCovered):
    """All but one part of the model is covered: `model` is the model without that part.

    `only_adds`: the part only adds memory; otherwise it changes only the bytes of the weights.
    """

    def __init__(self, message: str, model: LanguageModel, *, only_adds: bool) -> None:
        super().__init__(message)
        self.model = model
        self.only_adds = only_adds


class EngineRefusal(NotCovered):
    """The engine refuses the model; the message has its words."""


class Implementation(StrEnum):
    """The code that runs the model on TPU: tpu_inference's own, or vLLM's PyTorch code through torchax."""

    JAX = "flax_nnx"
    TORCHAX = "vllm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The attention layers of one kind.

    `cached` of them have a cache of their own; the others read that of an earlier layer. `window` is in tokens, or
    None without a window. `projections` is 2, or 1 if the keys are also the values. `is_latent`: one vector of
    `head_dim` elements is cached for all heads (MLA).
    """

    layers: int
    cached: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    projections: int = 2
    has_bias: bool = False
    is_latent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """Layers with a gated feed-forward of this width."""

    layers: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Layers with a mixture of experts, each gated and `width` wide. A token goes through `per_token` of them."""

    layers: int
    count: int
    width: int
    per_token: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Vision:
    """The vision tower, in elements: `split` over the chips, `replicated` on each."""

    heads: int
    split: int
    replicated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState:
    """Layers with a recurrent state (Mamba, gated delta nets): the bytes of one slot of one layer, over all chips."""

    layers: int
    slot_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """What the engine's own loader makes of a checkpoint, by number of chips that share it, or why it refuses.

    `weights` are bytes on a chip. `parameters` and `checkpoint_bytes` are those of the files, `active` of the
    parameters those that every token is multiplied with. `release` is the engine that was asked.
    """

    release: str
    parameters: int
    active: int
    checkpoint_bytes: int
    weights: Mapping[int, int]
    refusals: Mapping[int, str] = field(default_factory=dict)
    is_pooling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A decoder. Sizes are in elements, not bytes.

    `pads_kv_weights`: with more chips than KV heads, K and V weights are copied as the cache is; else split further.
    `norms` counts what is whole on every chip: norms, scales. `is_head_whole`: so is an output table of its own.
    `unloaded` is in the checkpoint but never on a chip. `item_tokens` is the largest item of each modality in tokens;
    empty for text alone. `is_prefix_lm`: an image is attended to as a whole, so vLLM raises its default step to the
    largest item. `linear_dtype` is the type of the linear layers of a quantized checkpoint, or "". `answer` replaces
    the arithmetic of weights: `feed_forward` and `norms` are then empty. `unverified` says what is not certain.
    """

    name: str
    architecture: str
    implementation: Implementation
    layers: int
    hidden: int
    vocabulary: int
    is_tied: bool
    max_position: int
    attention: tuple[Attention, ...]
    feed_forward: tuple[FeedForward, ...]
    experts: Experts | None = None
    per_layer_width: int = 0
    norms: int = 0
    vision: Vision | None = None
    unloaded: int = 0
    pads_kv_weights: bool = False
    is_head_whole: bool = False
    is_prefix_lm: bool = False
    item_tokens: Mapping[str, int] = field(default_factory=dict)
    linear_dtype: str = ""
    states: tuple[RecurrentState, ...] = ()
    answer: EngineAnswer | None = None
    source: str = ""
    unverified: tuple[str, ...] = ()

    @property
    def heads(self) -> int:
        return self.attention[0].heads

    @property
    def kv_heads(self) -> tuple[int, ...]:
        """The KV heads of each kind of layer."""
        return tuple(kind.kv_heads for kind in self.attention)

    @property
    def is_multimodal(self) -> bool:
        return bool(self.item_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What the hub says of one commit of a model: its config.json, "" without one, and its elements by their type."""

    config: str = ""
    tensors: Mapping[str, int] = field(default_factory=dict)
