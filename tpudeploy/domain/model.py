"""LanguageModel: what a decoder is made of, in numbers. The rows and how they are read stand in catalog/families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class NotCovered(ValueError):
    """The arithmetic does not cover this model; the message is the clause after "cannot size this, because"."""


class PartlyCovered(NotCovered):
    """All but one part of the model is covered: `model` is it without that part.

    `only_adds`: the part is one more in memory; else it changes the bytes of the weights, and nothing else.
    """

    def __init__(self, message: str, model: LanguageModel, *, only_adds: bool) -> None:
        super().__init__(message)
        self.model = model
        self.only_adds = only_adds


class Implementation(StrEnum):
    """Whose code runs the model on TPU: tpu_inference's own, or vLLM's PyTorch code through torchax."""

    JAX = "flax_nnx"
    TORCHAX = "vllm"


@frozen
class Attention:
    """The layers of one kind.

    `cached` of them keep keys and values of their own; the others read those of an earlier layer. `window` is in
    tokens, None where a token sees all before it. `projections` is 2, or 1 where the keys serve as values.
    """

    layers: int
    cached: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None
    projections: int = 2
    has_bias: bool = False


@frozen
class FeedForward:
    """Layers with a gated feed-forward of this width."""

    layers: int
    width: int


@frozen
class Experts:
    """Layers with a mixture of experts, each gated and `width` wide. A token goes through `per_token` of them."""

    layers: int
    count: int
    width: int
    per_token: int = 1


@frozen
class Vision:
    """The vision tower, in elements: `split` over the chips, `replicated` on each."""

    heads: int
    split: int
    replicated: int


@frozen
class LanguageModel:
    """A decoder. Sizes are in elements, not bytes.

    `pads_kv_weights`: with more chips than KV heads, K and V weights are copied as the cache is; else split further.
    `norms` counts what every chip holds whole: norms, scales. `unloaded` is in the checkpoint but never on a chip.
    `item_tokens` is the largest item of each modality in tokens; empty for text alone. `is_prefix_lm`: an image is
    attended to as a whole, so vLLM raises its default step to the largest item. `unverified` says what is not certain.
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
    is_prefix_lm: bool = False
    item_tokens: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    unverified: tuple[str, ...] = ()

    @property
    def heads(self) -> int:
        return self.attention[0].heads

    @property
    def kv_heads(self) -> tuple[int, ...]:
        """Of each kind of layer."""
        return tuple(kind.kv_heads for kind in self.attention)

    @property
    def is_multimodal(self) -> bool:
        return bool(self.item_tokens)
