"""Ids of copies, quantized copies and fine-tunes of the models that the families list, each with its base model.

A copy in another organization, or in other letter case, is recognized by the model's whole name. What a name doesn't
say, such as a vocabulary that a fine-tune extended, is unknown: `model.config` describes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.frozen import frozen


@frozen
class Variant:
    """A model whose shapes are those of `base`. `fields` are what its config.json has beside that of the base."""

    base: str
    fields: Mapping[str, Any]


def _quantized(method: str, **fields: object) -> Mapping[str, Any]:
    return {"quantization_config": {"quant_method": method, **fields}}


_FLOATS = {"config_groups": {"group_0": {"weights": {"num_bits": 8}}}}
# The end of a name, after which publishers name how they quantized a checkpoint, and what its config.json then says.
# Read from the published checkpoints of Qwen (-FP8, -AWQ, -GPTQ-Int4), Red Hat (-FP8-dynamic, -quantized.w8a8 and
# w4a16, all of compressed-tensors), Unsloth (-bnb-4bit) and NVIDIA (-FP8, -NVFP4).
_ENDINGS = (
    (re.compile(r"(-fp8-(dynamic|block)|-(quantized\.)?w8a(8|16))$"), _quantized("compressed-tensors", **_FLOATS)),
    (re.compile(r"-fp8(-kv)?$"), _quantized("fp8")),
    (re.compile(r"-awq(-int4|-4bit)?$"), _quantized("awq")),
    (re.compile(r"(-qat)?-(quantized\.)?w4a(8|16)(-ct)?$"), _quantized("compressed-tensors")),
    (re.compile(r"-gptq(-int[348]|-[348]b(it)?)?(-\d+g)?$"), _quantized("gptq")),
    (re.compile(r"(-unsloth)?-bnb-4bit$"), _quantized("bitsandbytes")),
    (re.compile(r"-nvfp4$"), _quantized("modelopt_fp4")),
    (re.compile(r"-gguf$"), _quantized("gguf")),
)
# Fine-tunes whose config.json has the dimensions of their base, the length included.
_FINE_TUNES: Mapping[str, str] = {
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": "meta-llama/Llama-3.1-8B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-70B": "meta-llama/Llama-3.3-70B-Instruct",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "Qwen/Qwen2.5-7B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": "Qwen/Qwen2.5-14B",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": "Qwen/Qwen2.5-32B",
    "NousResearch/Hermes-3-Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF": "meta-llama/Llama-3.1-70B-Instruct",
}


def variant_of(model_id: str, ids: Mapping[str, str]) -> Variant | None:
    """Return the base model of an id that no family lists, or None. `ids` are those that are listed, by their names."""
    owner, _, full_name = model_id.rpartition("/")
    if not owner:
        return None  # not an id of the hub: a folder, or a name under which a server serves
    name, fields = _without_ending(full_name.lower())
    names = {each.rpartition("/")[2].lower(): base for each, base in _FINE_TUNES.items()} | dict(ids)
    # Meta's own repositories of Llama 3.1, and most copies of them, have that prefix.
    base = names.get(name) or names.get(name.removeprefix("meta-"))
    return None if base is None else Variant(base=base, fields=fields)


def _without_ending(name: str) -> tuple[str, Mapping[str, Any]]:
    for ending, fields in _ENDINGS:
        match = ending.search(name)
        if match is not None:
            return name[: match.start()], fields
    return name, {}


# Words by which publishers name a method wherever the word stands, of checkpoints whose base may be unknown.
_METHODS = ("gptq", "bnb-4bit", "gguf", "awq")


def method_in(model_id: str) -> str:
    """Return the method that an id names, as a config.json calls it, or ""."""
    name = model_id.rpartition("/")[2].lower()
    word = next((word for word in _METHODS if word in name), "")
    return "bitsandbytes" if word.startswith("bnb") else word
