"""The least that a checkpoint weighs is below what it really weighs, and close to it."""

from __future__ import annotations

from typing import Any

import pytest

from tpudeploy.catalog.checkpoints import least_weights, parameters_in_name, parameters_of_shapes

DEEPSEEK: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "vocab_size": 129280,
    "n_routed_experts": 256,
    "moe_intermediate_size": 2048,
    "intermediate_size": 18432,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "quantization_config": {"quant_method": "fp8"},
}
LLAMA: dict[str, Any] = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "intermediate_size": 14336,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("config", "billions", "share"), [(DEEPSEEK, 671.0, 0.95), (LLAMA, 8.03, 0.5)], ids=["DeepSeek-R1", "Llama-3.1-8B"]
)
def test_shapes_are_a_lower_bound_of_the_parameters(config: dict[str, Any], billions: float, share: float) -> None:
    assert share * billions * 1e9 < parameters_of_shapes(config) < billions * 1e9


def test_the_hubs_index_counts_before_shapes_and_shapes_before_a_listed_count() -> None:
    index = least_weights("deepseek-ai/DeepSeek-R1", DEEPSEEK, {"BF16": 3_000_000_000, "F8_E4M3": 680_000_000_000})
    shapes = least_weights("deepseek-ai/DeepSeek-R1", DEEPSEEK, {})
    counted = least_weights("deepseek-ai/DeepSeek-V3.2", {}, {})
    assert index is not None
    assert index.size == int(0.9 * (6 + 680) * 1e9)
    assert shapes is not None
    assert "config.json" in shapes.source
    assert counted is not None
    assert counted.size == int(0.9 * 671_877_929_216)
    assert "as Transformers' class counts them" in counted.source
    assert least_weights("somebody/Something-405B", {}, {}) is None


def test_weights_that_are_quantized_as_they_are_loaded_count_with_four_bits() -> None:
    plain = least_weights("a/b", {}, {"BF16": 8_000_000_000})
    quantized = least_weights("a/b", {}, {"BF16": 8_000_000_000}, is_requantized=True)
    assert plain is not None
    assert quantized is not None
    assert plain.size == 4 * quantized.size


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"hidden_size": "4096", "num_hidden_layers": 32},
        {"hidden_size": 4096, "num_hidden_layers": True},
        {"hidden_size": 10**30, "num_hidden_layers": 10**30},
        {"text_config": []},
    ],
)
def test_a_config_without_shapes_tells_nothing(config: dict[str, Any]) -> None:
    assert parameters_of_shapes(config) == 0


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("a/Something-405B", 405.0),
        ("a/Qwen3-235B-A22B", 235.0),
        ("a/gemma-4-E2B-it", 0.0),
        ("a/Mixtral-8x7B-v0.1", 44.8),
        ("a/phi-1.5b", 1.5),
        ("a/b", 0.0),
        ("70b/model", 0.0),
    ],
)
def test_a_name_tells_billions_as_publishers_write_them(name: str, billions: float) -> None:
    assert parameters_in_name(name) == pytest.approx(billions)


def test_weights_in_float32_are_bounded_by_the_sixteen_bits_in_which_vllm_loads_them() -> None:
    config = {"hidden_size": 4_096, "num_hidden_layers": 32, "intermediate_size": 14_336, "vocab_size": 128_256}
    by_shape = least_weights("a/b", {**config, "torch_dtype": "float32"}, {})
    by_index = least_weights("a/b", {}, {"F32": 8_000_000_000})
    assert by_shape == least_weights("a/b", {**config, "torch_dtype": "bfloat16"}, {})
    assert by_index == least_weights("a/b", {}, {"BF16": 8_000_000_000})
