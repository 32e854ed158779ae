"""Mistral and Mixtral, for `model.config` alone: dense and mixture-of-experts decoders that torchax runs."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog.families.reading import Config, decoder, depth, whole
from tpudeploy.domain.frozen import replace
from tpudeploy.domain.model import Experts, LanguageModel

_MIXTRAL = "MixtralForCausalLM"
ARCHITECTURES = ("MistralForCausalLM", _MIXTRAL)
MODELS: Mapping[str, Config] = {}


def read(name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for a missing field."""
    experts = None
    if architecture == _MIXTRAL:
        width = whole(config, "intermediate_size")
        each = whole(config, "num_experts_per_tok", 1)
        count = whole(config, "num_local_experts")
        experts = Experts(layers=depth(config), count=count, width=width, per_token=each)
    plain = decoder(name, architecture, config, source=__doc__ or "", on_torchax=True, experts=experts)
    if config.get("sliding_window") is None:
        return plain
    (attention,) = plain.attention
    return replace(plain, attention=(replace(attention, window=whole(config, "sliding_window")),))
