"""Ids of the hub, and the model whose shapes each has: itself, the base of a copy or a quantized checkpoint, or none."""

from __future__ import annotations

import pytest

from tpudeploy.catalog import families
from tpudeploy.domain.model import PartlyCovered
from tpudeploy.sizing.weights import checkpoint_bytes, parameters

GIB = 2**30
# The id, the published number of parameters, and the GiB of the checkpoint.
SIZED = (
    ("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768, 0.92),
    ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512, 14.19),
    ("Qwen/Qwen2.5-32B", 32_763_876_352, 61.03),
    ("Qwen/Qwen2.5-72B-Instruct", 72_706_203_648, 135.43),
    ("Qwen/Qwen2.5-Coder-32B-Instruct", 32_763_876_352, 61.03),
    ("meta-llama/Llama-3.2-1B-Instruct", 1_235_814_400, 2.30),
    ("meta-llama/Llama-3.2-3B-Instruct", 3_212_749_824, 5.98),
    ("Qwen/Qwen3-4B-Instruct-2507", 4_022_468_096, 7.49),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", 30_532_122_624, 56.87),
    ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 30_532_122_624, 56.87),
    ("Qwen/Qwen3-Embedding-8B", 8_188_515_328, 15.25),
    ("Qwen/Qwen3-Embedding-0.6B", 595_776_512, 1.11),
    ("Qwen/Qwen3-Reranker-4B", 4_021_784_576, 7.49),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 32_763_876_352, 61.03),
    ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 8_030_261_248, 14.96),
    ("NousResearch/Hermes-3-Llama-3.1-8B", 8_030_261_248, 14.96),
    ("unsloth/Meta-Llama-3.1-8B-Instruct", 8_030_261_248, 14.96),
    ("QWEN/qwen3-8b", 8_190_735_360, 15.26),
    ("Qwen/Qwen3-8B-FP8", 8_190_735_360, 8.79),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", 70_553_706_496, 67.69),
    ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", 8_030_261_248, 8.46),
    ("meta-llama/Llama-2-7b-chat-hf", 6_738_415_616, 12.55),
    ("unsloth/llama-3-8b-Instruct", 8_030_261_248, 14.96),
    ("meta-llama/Llama-3.1-405B-Instruct", 405_853_388_800, 755.96),
    ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1_100_048_384, 2.05),
    ("HuggingFaceTB/SmolLM2-135M-Instruct", 134_515_008, 0.25),
    ("tiiuae/Falcon3-10B-Instruct", 10_305_653_760, 19.20),
    ("Qwen/QwQ-32B", 32_763_876_352, 61.03),
    ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1_777_088_000, 3.31),
    ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", 8_190_735_360, 15.26),
    ("HuggingFaceH4/zephyr-7b-beta", 7_241_732_096, 13.49),
    ("mistralai/Mixtral-8x22B-Instruct-v0.1", 140_630_071_296, 261.94),
    ("mistralai/Mistral-Large-Instruct-2411", 122_610_069_504, 228.38),
)


@pytest.mark.parametrize(("model_id", "count", "gib"), SIZED)
def test_an_id_is_sized_by_its_model_or_by_its_base(model_id: str, count: int, gib: float) -> None:
    model = families.find_model(model_id)
    assert model is not None
    assert model.name == model_id
    assert parameters(model) == pytest.approx(count, rel=1e-6)
    assert checkpoint_bytes(model) / GIB == pytest.approx(gib, abs=0.01)


@pytest.mark.parametrize(
    "model_id",
    [
        "Qwen/Qwen3-32B-AWQ",
        "hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4",
        "google/gemma-4-E4B-it-qat-w4a16-ct",
        "RedHatAI/Qwen3-8B-quantized.w4a16",
        "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
        "Qwen/Qwen2.5-VL-7B-Instruct-AWQ",
        "nvidia/Llama-3.1-8B-Instruct-FP8",
        "nvidia/Llama-3.3-70B-Instruct-NVFP4",
        "mlx-community/Qwen3-8B-4bit",
        "lmstudio-community/gpt-oss-20b-MLX-8bit",
    ],
)
def test_the_bytes_of_a_checkpoint_in_four_bits_are_unknown_and_its_layers_are_not(model_id: str) -> None:
    with pytest.raises(PartlyCovered, match="quantised") as refusal:
        families.find_model(model_id)
    assert refusal.value.model == families.known_model(model_id)


@pytest.mark.parametrize(
    "model_id",
    [
        "somebody/something",
        "qwen3-8b",  # a served name or a folder, no id of the hub
        "somebody/Qwen3-17B",  # not 1.7B: only the whole name counts
        "somebody/Qwen3-8B-pruned",
        "somebody/my-Qwen3-8B",
    ],
)
def test_a_name_that_only_resembles_one_is_unknown(model_id: str) -> None:
    assert families.find_model(model_id) is None


@pytest.mark.parametrize(
    ("model_id", "method"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "gptq"),
        ("TheBloke/Mistral-7B-Instruct-v0.2-GPTQ", "gptq"),
        ("ISTA-DASLab/gemma-3-27b-it-GPTQ-4b-128g", "gptq"),
        ("unsloth/Qwen3-8B-unsloth-bnb-4bit", "bitsandbytes"),
        ("unsloth/Qwen3-8B-GGUF", "gguf"),
        ("Qwen/Qwen3-14B-AWQ", "awq"),
        ("Qwen/Qwen3-8B-FP8", "fp8"),
        ("google/gemma-4-E2B-it", ""),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "modelopt"),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "compressed-tensors"),
        ("mlx-community/Qwen3-8B-4bit", "mlx"),
        ("mlx-community/Qwen3-8B-bf16", ""),
    ],
)
def test_the_method_of_a_checkpoint_is_in_its_id(model_id: str, method: str) -> None:
    assert families.quantization_of(model_id) == method
