"""How the sizing tests ask: a model, a slice and settings in one line."""

from __future__ import annotations

from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.domain.budget import EngineSettings, HbmBudget, Speculation, Unsized
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing import compute_budget

GIB = 1024**3


def model(name: str) -> LanguageModel:
    """`E2B` is google/gemma-4-E2B-it; anything else is a hub id."""
    model = families.find_model(f"google/gemma-4-{name}-it") or families.find_model(name)
    assert model is not None, name
    return model


def budget_of(name: str, slice_type: str, **settings: Any) -> HbmBudget | Unsized:
    """The settings of the reference runs, unless others are given: 16,384 tokens, 4,096 a step, every chip in one."""
    kind = catalog.accelerator_type(slice_type)
    assert kind is not None, slice_type
    defaults: dict[str, Any] = {
        "tensor_parallel": kind.chips,
        "max_model_len": 16_384,
        "max_num_batched_tokens": 4_096,
        "is_multimodal": model(name).is_multimodal,
    }
    return compute_budget(model(name), kind, EngineSettings(**{**defaults, **settings}))


def sized(name: str, slice_type: str, **settings: Any) -> HbmBudget:
    budget = budget_of(name, slice_type, **settings)
    assert isinstance(budget, HbmBudget), budget
    return budget


def ngram(tokens: int) -> Speculation:
    return Speculation(method="ngram", tokens=tokens)
