"""The models that people deploy most, and what tpudeploy says of each: sized, refused in words, or not known."""

from __future__ import annotations

import pytest
from sizing.profiles import deployment

from tpudeploy.domain.budget import HbmBudget

MODELS = (
    "google/gemma-2-2b-it",
    "google/gemma-2-9b-it",
    "google/gemma-2-27b-it",
    "google/gemma-3-1b-it",
    "google/gemma-3-4b-it",
    "google/gemma-3-12b-it",
    "google/gemma-3-27b-it",
    "google/gemma-3n-E4B-it",
    "google/gemma-4-E2B-it",
    "google/gemma-4-E4B-it",
    "google/gemma-4-12B-it",
    "google/gemma-4-26B-A4B-it",
    "google/gemma-4-31B-it",
    "google/gemma-4-E4B-it-qat-w4a16-ct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.2-3B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8",
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic",
    "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
    "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF",
    "NousResearch/Hermes-3-Llama-3.1-8B",
    "Qwen/Qwen2.5-0.5B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen2.5-72B-Instruct",
    "Qwen/Qwen2.5-Coder-32B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-4B-Instruct-2507",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-8B-FP8",
    "Qwen/Qwen3-14B-AWQ",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B-Instruct-2507",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    "Qwen/Qwen3-235B-A22B-Instruct-2507",
    "Qwen/Qwen3-VL-8B-Instruct",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen3.5-9B",
    "Qwen/Qwen3-Embedding-8B",
    "Qwen/Qwen3-Embedding-0.6B",
    "Qwen/Qwen3-Reranker-4B",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
    "mistralai/Devstral-Small-2507",
    "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "moonshotai/Kimi-K2-Instruct",
    "zai-org/GLM-4.5-Air",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "microsoft/phi-4",
    "microsoft/Phi-4-mini-instruct",
    "ibm-granite/granite-3.3-8b-instruct",
    "allenai/OLMo-2-1124-7B-Instruct",
    "HuggingFaceTB/SmolLM2-1.7B-Instruct",
    "HuggingFaceTB/SmolLM3-3B",
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    "intfloat/multilingual-e5-large",
    "intfloat/e5-mistral-7b-instruct",
    "BAAI/bge-reranker-v2-m3",
    "openai/whisper-large-v3",
    "MiniMaxAI/MiniMax-M2",
)
# Their config.json could not be found with certainty, or what is left of them was not asked of the engine.
NOT_KNOWN = frozenset({"google/gemma-4-E4B-it-qat-w4a16-ct"})


def is_sized_or_refused(model_id: str) -> bool:
    """Return whether some slice of one host holds it, its weights exceed all chips, or the engine refuses it."""
    for chips in (1, 4, 8):
        sized = deployment({"model.id": model_id, "tpu.type": f"v6e-{chips}", "serving.max_model_len": 512}).budget
        if isinstance(sized, HbmBudget) or sized.is_refused or sized.is_impossible or sized.at_least is not None:
            return True
    return False


@pytest.mark.parametrize("model_id", MODELS)
def test_a_popular_model_is_sized_or_refused_in_words(model_id: str) -> None:
    assert is_sized_or_refused(model_id) is (model_id not in NOT_KNOWN)
