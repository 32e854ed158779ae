"""A config.json describes a model that the catalogue does not know, or says why it cannot be sized."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from sizing.profiles import budget, deployment
from sizing.vectors import model

from tpudeploy.catalog import families
from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.model import NotCovered
from tpudeploy.sizing.weights import parameters

# Parameters of the real classes, built on a device without memory (transformers 5.19).
PARAMETERS = {
    "google/gemma-4-12B-it": 11_959_730_176,
    "google/gemma-3-1b-it": 999_885_952,
    "google/gemma-3-4b-it": 4_300_079_472,
    "google/gemma-3-12b-it": 12_187_325_040,
    "google/gemma-3-27b-it": 27_432_406_640,
    "meta-llama/Llama-3.1-8B": 8_030_261_248,
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-14B": 14_768_307_200,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
}

# As transformers 5.19 writes it: what differs by layer stands under the layer's number.
GEMMA_26B: Mapping[str, Any] = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "text_config": {
        "attention_k_eq_v": True,
        "enable_moe_block": True,
        "head_dim": 256,
        "hidden_size": 2816,
        "hidden_size_per_layer_input": 0,
        "intermediate_size": 2112,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
        "max_position_embeddings": 262144,
        "moe_intermediate_size": 704,
        "num_attention_heads": 16,
        "num_experts": 128,
        "num_hidden_layers": 30,
        "num_key_value_heads": 8,
        "num_kv_shared_layers": 0,
        "top_k_experts": 8,
        "per_layer_config": {n: {"head_dim": 512, "num_key_value_heads": 2} for n in ("05", "11", "17", "23", "29")},
        "sliding_window": 1024,
        "use_bidirectional_attention": "vision",
        "vocab_size": 262144,
    },
    "vision_config": {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 16,
        "position_embedding_size": 10240,
        "standardize": True,
    },
}
MIXTRAL: Mapping[str, Any] = {
    "architectures": ["MixtralForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "sliding_window": None,
    "vocab_size": 32000,
}


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_parameters_of_the_catalogue_are_those_of_the_real_classes(name: str, count: int) -> None:
    assert parameters(model(name)) == pytest.approx(count, abs=100)


@pytest.mark.parametrize(("name", "count"), [("26B-A4B", 25_805_933_872), ("31B", 31_273_086_512)])
def test_parameters_of_the_large_gemmas_are_those_of_the_real_classes(name: str, count: int) -> None:
    # Beside them: a bias and a scale after the vision tower, and a scalar a layer.
    assert parameters(model(name)) == pytest.approx(count, abs=2_400)


def test_a_config_as_the_newest_transformers_write_it_is_the_catalogues_own_model() -> None:
    published = families.from_text("google/gemma-4-26B-A4B-it", json.dumps(GEMMA_26B))
    assert published == model("26B-A4B")


@pytest.mark.parametrize(("head_dim", "padded"), [(64, 64), (96, 128), (128, 128), (160, 256)])
def test_heads_are_held_as_the_kernels_want_them(head_dim: int, padded: int) -> None:
    config = {**MIXTRAL, "architectures": ["LlamaForCausalLM"], "num_local_experts": 0, "head_dim": head_dim}
    sized = budget({"model.id": "somebody/llama", "tpu.type": "v6e-8", ARGS: {}}, config)
    # A chip of eight has four heads of queries and of outputs, and one of keys and of values, in 32 layers.
    assert sized.weights["attention"] == 32 * 4_096 * (2 * 4 + 2) * padded * 2


def test_a_config_of_gemma_3_without_layer_types_is_read_by_its_pattern() -> None:
    config = {**families.FAMILIES[1].models["google/gemma-3-1b-it"], "sliding_window_pattern": 2}
    windowed, whole = families.from_config("somebody/gemma", config).attention
    assert (windowed.layers, whole.layers) == (13, 13)


def test_a_mixture_of_experts_is_sized_from_its_config() -> None:
    sized = budget({"model.id": "mistralai/Mixtral-8x7B-v0.1", "tpu.type": "v6e-8", ARGS: {}}, MIXTRAL)
    assert parameters(sized.model) == 46_702_792_704
    assert sized.holds_a_request
    assert any("torchax" in text for text in sized.estimates)


ARGS = "serving.args"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"architectures": ["MambaForCausalLM"]}, "MambaForCausalLM"),
        ({"architectures": None}, "architectures"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantised"),
        ({"kv_lora_rank": 512}, "MLA"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": "4096"}, "'4096'"),
        ({"num_attention_heads": True}, "True"),
    ],
)
def test_what_is_not_covered_says_why(change: Mapping[str, Any], word: str) -> None:
    sized = deployment({"model.id": "a/b"}, {**MIXTRAL, **change}).budget
    assert isinstance(sized, Unsized)
    assert word in sized.because


def test_layers_of_another_kind_are_not_guessed_at() -> None:
    part = {**GEMMA_26B["text_config"], "layer_types": ["linear_attention"] * 30}
    with pytest.raises(NotCovered, match="linear_attention"):
        families.from_config("a/b", {**GEMMA_26B, "text_config": part})


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_a_text_that_is_not_a_config_is_refused_with_words(text: str) -> None:
    with pytest.raises(NotCovered, match=r"not (a )?JSON"):
        families.from_text("a/b", text)


def test_every_family_lists_models_that_it_can_read() -> None:
    for family in families.FAMILIES:
        for name in family.models:
            model = families.find_model(name)
            assert model is not None
            assert model.source
