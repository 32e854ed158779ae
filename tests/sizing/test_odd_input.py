"""Whatever a config or a setting holds, sizing answers: a budget, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizing.profiles import deployment
from sizing.test_model_config import GEMMA_26B, MIXTRAL

from tpudeploy.catalog import families
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.model import LanguageModel, NotCovered

STEADY = settings(max_examples=300)
SCALARS = st.none() | st.booleans() | st.integers(-3, 10**12) | st.floats() | st.text(max_size=5)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
CONFIGS = [GEMMA_26B, MIXTRAL, *[config for family in families.FAMILIES for config in family.models.values()]]


@STEADY
@given(config=st.sampled_from(CONFIGS), data=st.data())
def test_a_config_with_one_field_wrong_is_read_or_refused(config: dict[str, Any], data: st.DataObject) -> None:
    part = dict(config.get("text_config", config))
    changed = {**part, data.draw(st.sampled_from(sorted(part))): data.draw(JSON)}
    whole = {**config, "text_config": changed} if "text_config" in config else changed
    with suppress(NotCovered):
        assert isinstance(families.from_config("a/b", whole), LanguageModel)


@STEADY
@given(config=JSON)
def test_any_json_is_read_or_refused(config: Any) -> None:
    with pytest.raises(NotCovered):
        families.from_text("a/b", json.dumps(config))


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_kv_shared_layers", 30), ("num_hidden_layers", 10**9), ("per_layer_config", [1]), ("layer_types", [])],
)
def test_a_config_that_means_nothing_is_refused(field: str, value: Any) -> None:
    part = {**GEMMA_26B["text_config"], field: value}
    with pytest.raises(NotCovered):
        families.from_config("a/b", {**GEMMA_26B, "text_config": part})


@pytest.mark.parametrize("name", ["n_routed_experts", "num_local_experts", "num_experts"])
@pytest.mark.parametrize("model_id", ["meta-llama/Llama-3.1-8B", "Qwen/Qwen3-8B", "google/gemma-3-4b-it"])
def test_a_dense_class_with_experts_in_its_config_is_not_sized_as_dense(model_id: str, name: str) -> None:
    config = next(family.models[model_id] for family in families.FAMILIES if model_id in family.models)
    part = {**config.get("text_config", config), name: 64}
    with pytest.raises(NotCovered, match=f"has experts .`{name}`"):
        families.from_config("a/b", {**config, "text_config": part} if "text_config" in config else part)


def test_a_config_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(NotCovered):
        families.from_text("a/b", "[" * 100_000)


ARGS, ENV = "serving.args", "serving.env"
ODD: list[dict[str, Any]] = [
    {f"{ENV}.MIN_TOKEN_BUCKET": "0"},
    {f"{ENV}.MIN_TOKEN_BUCKET": "24"},
    {f"{ENV}.ATTN_BUCKETIZED_NUM_REQS": "1", f"{ENV}.ATTN_CUSTOM_NUM_REQS_BUCKETS": "8;16"},
    {"serving.padding_gap": 1, "serving.max_num_batched_tokens": 2**31 - 1},
    {f"{ARGS}.additional_config": {"compilation_sizes": {"a": 1}}},
]


@pytest.mark.parametrize("settings", ODD, ids=str)
def test_a_setting_that_means_nothing_is_a_reason_and_no_crash(settings: dict[str, Any]) -> None:
    sized = deployment(settings).budget
    assert isinstance(sized, Unsized)
    assert sized.because


@pytest.mark.parametrize("name", ["max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size"])
@pytest.mark.parametrize("settings_of", [lambda n: n, lambda n: 2**31 - 1 - n])
def test_the_largest_and_the_smallest_settings_are_sized(name: str, settings_of: Callable[[int], int]) -> None:
    for offset in (1, 2, 3):
        assert isinstance(deployment({f"serving.{name}": settings_of(offset)}).budget, HbmBudget)
