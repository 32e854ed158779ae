"""The least that the weights weigh on all chips together, for a model or settings that cannot be sized."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.catalog import families
from tpudeploy.catalog.checkpoints import least_of_parameters, least_weights
from tpudeploy.domain.budget import LeastWeights
from tpudeploy.domain.model import LanguageModel, PartlyCovered
from tpudeploy.sizing.weights import least_bytes, parameters


def weights_of(model: LanguageModel) -> LeastWeights:
    """Return the least bytes of a model whose weights are as in its checkpoint."""
    return LeastWeights(size=least_bytes(model), source=f"{parameters(model) / 1e9:,.1f} billion parameters")


def weights_at_least(
    model: LanguageModel | None,
    model_id: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, int] | None = None,
    *,
    is_requantized: bool = False,
) -> LeastWeights | None:
    """Return the least bytes of the weights, by the checkpoint, or by what is known of the model without them."""
    if model is None and not tensors and not config:
        # The engine refuses it as it is set up. Its weights are those of its files in any case.
        whole = model_by_id(model_id)
        if whole is not None:
            return least_of_parameters(parameters(whole)) if is_requantized else weights_of(whole)
    if model is not None and not tensors:
        # Its bytes are not known, because they are quantized or lie otherwise: its parameters are.
        return least_of_parameters(parameters(model))
    return least_weights(model_id, config, tensors or {}, is_requantized=is_requantized)


def model_by_id(model_id: str) -> LanguageModel | None:
    """Return the listed model of an id, or None if it's not listed, or if its checkpoint is quantized in some way."""
    try:
        return families.find_model(model_id)
    except PartlyCovered:
        return None
