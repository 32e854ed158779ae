"""Quantized checkpoints that the engine does not load, as it answered for models of two layers without a chip."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tpudeploy.catalog import families, quantization
from tpudeploy.domain.model import Implementation

JAX, TORCHAX = Implementation.JAX, Implementation.TORCHAX
_MODELS = {
    "Llama": "meta-llama/Llama-3.1-8B",
    "Qwen3": "Qwen/Qwen3-8B",
    "Qwen3Moe": "Qwen/Qwen3-30B-A3B",
    "Mistral": "mistralai/Mistral-7B-v0.3",
}


def scheme(bits: int, kind: str) -> dict[str, Any]:
    groups = {"group_0": {"weights": {"num_bits": bits, "type": kind}}}
    return {"quant_method": "compressed-tensors", "config_groups": groups}


FP8, CT_FP8, INT8, INT4 = {"quant_method": "fp8"}, scheme(8, "float"), scheme(8, "int"), scheme(4, "int")
AWQ, GPTQ = {"quant_method": "awq"}, {"quant_method": "gptq"}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
# The class, its implementation, the section of its config.json, and a part of the engine's words, "" where it loads.
ANSWERS: tuple[tuple[str, Implementation, dict[str, Any], str], ...] = (
    ("Llama", JAX, FP8, "does not read a checkpoint quantized with fp8: its weights stay in bfloat16"),
    ("Llama", JAX, CT_FP8, "does not read a checkpoint quantized with compressed-tensors"),
    ("Llama", JAX, INT4, "does not read a checkpoint quantized with compressed-tensors"),
    ("Llama", JAX, AWQ, "auto_awq quantization method not supported. Supported methods are compressed-tensors, fp8"),
    ("Llama", JAX, GPTQ, "auto_gptq quantization is currently not supported in tpu"),
    ("Llama", JAX, {"quant_method": "modelopt", "quant_algo": "FP8"}, "modelopt quantization is currently not"),
    ("Llama", JAX, NVFP4, "modelopt_fp4 quantization method not supported"),
    ("Llama", JAX, {"group_size": 64, "bits": 4}, "does not read a checkpoint quantized with mlx"),
    ("Llama", TORCHAX, FP8, ""),
    ("Llama", TORCHAX, INT8, ""),
    ("Llama", TORCHAX, AWQ, ""),
    ("Llama", TORCHAX, {"quant_method": "torchao"}, "torchao quantization is currently not supported in tpu"),
    ("Qwen3", JAX, FP8, ""),
    ("Qwen3", JAX, CT_FP8, ""),
    ("Qwen3", JAX, INT4, ""),
    ("Qwen3", JAX, INT8, "not yet supported in the JAX path"),
    ("Qwen3", JAX, {}, ""),
    ("Qwen3Moe", TORCHAX, CT_FP8, ""),
    ("Qwen3Moe", TORCHAX, AWQ, ""),
    ("Qwen3Moe", TORCHAX, INT8, "Unsupported FusedMoe scheme"),
    ("Mistral", TORCHAX, INT8, ""),
    ("Mistral", TORCHAX, {"quant_method": "mxfp4"}, "mxfp4 quantization is currently not supported in tpu"),
)


@pytest.mark.parametrize("release", ["0.29.0", "0.32.0", None])
@pytest.mark.parametrize(("name", "implementation", "section", "words"), ANSWERS)
def test_a_quantized_checkpoint_is_loaded_or_refused_as_the_engine_does(
    name: str, implementation: Implementation, section: dict[str, Any], words: str, release: str | None
) -> None:
    model = families.known_model(_MODELS[name])
    assert model is not None
    refusal = quantization.refusal({"quantization_config": section}, model, implementation, release)
    assert words in refusal
    assert bool(refusal) is bool(words)


def test_gpt_oss_has_a_method_of_its_own() -> None:
    model = families.known_model("openai/gpt-oss-20b")
    assert model is not None
    section = {"quantization_config": {"quant_method": "mxfp4"}}
    assert not quantization.refusal(section, model, TORCHAX, "0.32.0")
    assert quantization.refusal(section, replace(model, architecture="LlamaForCausalLM"), TORCHAX, "0.32.0")
