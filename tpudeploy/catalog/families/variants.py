"""Ids of copies, quantized copies and fine-tunes of the models that the families list, each with its base model.

A copy in another organization, or in other letter case, is recognized by the model's whole name. What a name doesn't
say, such as a vocabulary that a fine-tune extended, is unknown: `model.config` describes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A model whose shapes are those of `base`. `fields` are what its config.json has beside that of the base."""

    base: str
    fields: Mapping[str, Any]


def _quantized(method: str, **fields: object) -> Mapping[str, Any]:
    return {"quantization_config": {"quant_method": method, **fields}}


def _scheme(bits: int, kind: str) -> Mapping[str, Any]:
    return _quantized("compressed-tensors", config_groups={"group_0": {"weights": {"num_bits": bits, "type": kind}}})


# The end of a name, after which publishers name how they quantized a checkpoint, and what its config.json then says;
# the first row that fits, of which the first part is the organization. Read from the published checkpoints of Qwen
# (-FP8, -AWQ, -GPTQ-Int4, -MLX-4bit), Red Hat, formerly Neural Magic (-FP8, -FP8-dynamic, -quantized.w8a8 and w4a16,
# -NVFP4, all of compressed-tensors), Unsloth (-bnb-4bit), NVIDIA (-FP8, -FP4 and -NVFP4, of ModelOpt) and MLX.
_ENDINGS = tuple(
    (re.compile(organization), re.compile(ending), fields)
    for organization, ending, fields in (
        ("nvidia", r"-fp8$", _quantized("modelopt", quant_algo="FP8")),
        ("redhatai|neuralmagic|nm-testing", r"-fp8$", _scheme(8, "float")),
        ("redhatai|neuralmagic|nm-testing", r"-nvfp4(a16)?$", _scheme(4, "float")),
        ("mlx-community", r"-bf16$", {}),
        ("mlx-community", r"(-qat)?(-dwq|-mxfp4|-[2-8]bit(-dwq|-mlx)?)+$", {"quantization_config": {"bits": 4}}),
        ("", r"-mlx(-[2-8]bit)?(-dwq)?$", {"quantization_config": {"bits": 4}}),
        ("", r"-fp8-(dynamic|block)$", _scheme(8, "float")),
        ("", r"-(quantized\.)?w8a(8|16)(-int8)?$", _scheme(8, "int")),
        ("", r"-fp8(-kv)?$", _quantized("fp8")),
        ("", r"-awq(-int4|-4bit)?$", _quantized("awq")),
        ("", r"(-qat)?-(quantized\.)?w4a(8|16)(-ct)?$", _scheme(4, "int")),
        ("", r"-gptq(-int[348]|-[348]b(it)?)?(-\d+g)?$", _quantized("gptq")),
        ("", r"(-unsloth)?-bnb-4bit$", _quantized("bitsandbytes")),
        ("", r"-(nv)?fp4$", _quantized("modelopt", quant_algo="NVFP4")),
        ("", r"-gguf$", _quantized("gguf")),
    )
)
# Fine-tunes and base models whose config.json has the dimensions of a listed model, the length included.
_FINE_TUNES: Mapping[str, str] = {
    "allenai/OLMo-2-1124-7B": "allenai/OLMo-2-1124-7B-Instruct",
    "allenai/OLMo-2-1124-7B-DPO": "allenai/OLMo-2-1124-7B-Instruct",
    "allenai/OLMo-2-1124-7B-SFT": "allenai/OLMo-2-1124-7B-Instruct",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-R1-Zero": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V3": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V3-0324": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V3-Base": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V3.1": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V3.1-Base": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V3.1-Terminus": "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": "meta-llama/Llama-3.1-8B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "meta-llama/Llama-3.3-70B-Instruct",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "Qwen/Qwen2.5-7B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": "Qwen/Qwen2.5-14B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": "Qwen/Qwen2.5-32B",
    "google/gemma-2-2b": "google/gemma-2-2b-it",
    "google/gemma-2-9b": "google/gemma-2-9b-it",
    "google/gemma-2-27b": "google/gemma-2-27b-it",
    "google/gemma-3n-E4B": "google/gemma-3n-E4B-it",
    "google/medgemma-4b-it": "google/gemma-3-4b-it",
    "google/medgemma-4b-pt": "google/gemma-3-4b-it",
    "google/medgemma-27b-it": "google/gemma-3-27b-it",
    "HuggingFaceH4/zephyr-7b-beta": "mistralai/Mistral-7B-v0.1",
    "HuggingFaceTB/SmolLM2-1.7B": "HuggingFaceTB/SmolLM2-1.7B-Instruct",
    "HuggingFaceTB/SmolLM3-3B-Base": "HuggingFaceTB/SmolLM3-3B",
    "intfloat/multilingual-e5-large-instruct": "intfloat/multilingual-e5-large",
    "meta-llama/Llama-Guard-3-8B": "meta-llama/Llama-3.1-8B",
    "microsoft/Phi-4-reasoning-plus": "microsoft/Phi-4-reasoning",
    "allenai/OLMo-2-1124-13B": "allenai/OLMo-2-1124-13B-Instruct",
    "microsoft/Phi-4-mini-reasoning": "microsoft/Phi-4-mini-instruct",
    "MiniMaxAI/MiniMax-M2.1": "MiniMaxAI/MiniMax-M2",
    "MiniMaxAI/MiniMax-M2.5": "MiniMaxAI/MiniMax-M2",
    "moonshotai/Kimi-K2-Base": "moonshotai/Kimi-K2-Instruct",
    "NousResearch/Hermes-3-Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "NousResearch/Hermes-3-Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "NousResearch/Hermes-4-70B": "meta-llama/Llama-3.1-70B",
    "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF": "meta-llama/Llama-3.1-70B-Instruct",
    "nvidia/Llama-3.1-Nemotron-Nano-8B-v1": "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-Next-80B-A3B-Thinking": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen3-VL-8B-Thinking": "Qwen/Qwen3-VL-8B-Instruct",
    "Qwen/Qwen3.5-9B-Base": "Qwen/Qwen3.5-9B",
    "zai-org/GLM-4.5-Air-Base": "zai-org/GLM-4.5-Air",
}


def variant_of(model_id: str, ids: Mapping[str, str]) -> Variant | None:
    """Return the base model of an id that no family lists, or None. `ids` are those that are listed, by their names."""
    owner, _, full_name = model_id.rpartition("/")
    if not owner:
        return None  # not an id of the hub: a folder, or a name under which a server serves
    name, fields = _without_ending(owner.lower(), full_name.lower())
    names = {each.rpartition("/")[2].lower(): base for each, base in _FINE_TUNES.items()} | dict(ids)
    # Meta's own repositories of Llama 3.1, and most copies of them, have that prefix.
    base = names.get(name) or names.get(name.removeprefix("meta-")) or names.get(f"meta-{name}")
    return None if base is None else Variant(base=base, fields=fields)


def _without_ending(owner: str, name: str) -> tuple[str, Mapping[str, Any]]:
    for organization, ending, fields in _ENDINGS:
        match = ending.search(name)
        if match is not None and organization.match(owner):
            return name[: match.start()], fields
    return name, {}


# Words by which publishers name a method wherever the word stands, of checkpoints whose base may be unknown.
_METHODS = ("gptq", "bnb-4bit", "gguf", "awq")


def method_in(model_id: str) -> str:
    """Return the method that an id names, as a config.json calls it, or ""."""
    name = model_id.rpartition("/")[2].lower()
    word = next((word for word in _METHODS if word in name), "")
    return "bitsandbytes" if word.startswith("bnb") else word
