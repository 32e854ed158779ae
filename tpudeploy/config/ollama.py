"""Names of Ollama's library, such as llama3.1:8b, and the ids of the same models on the Hugging Face hub.

The names are unverified: general knowledge of ollama.com/library, not read from its pages. Ollama's weights are GGUF,
so the hub's repository is another copy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_FORM = re.compile(r"(?:ollama/|library/|ollama\.com/library/)?(?P<name>[a-z][a-z0-9.-]*)(?::(?P<tag>[\w.-]+))?")
# A size at the start of a tag, before the method by which the weights are quantized: 8b-instruct-q4_K_M.
_SIZE = re.compile(r"(?P<size>e?\d+(?:x\d+)?(?:\.\d+)?b)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """`hub` has {} for the size; `usual` is the size without a tag; `sizes` are written otherwise on the hub."""

    hub: str
    usual: str
    sizes: Mapping[str, str] = field(default_factory=dict)


def _small(*sizes: str) -> Mapping[str, str]:
    return {size: size for size in sizes}


_DEEPSEEK = {
    "1.5b": "-Distill-Qwen-1.5B",
    "7b": "-Distill-Qwen-7B",
    "8b": "-0528-Qwen3-8B",
    "14b": "-Distill-Qwen-14B",
    "32b": "-Distill-Qwen-32B",
    "70b": "-Distill-Llama-70B",
    "671b": "",
}
_MODELS: Mapping[str, _Model] = {
    "llama3": _Model(hub="meta-llama/Meta-Llama-3-{}-Instruct", usual="8b"),
    "llama3.1": _Model(hub="meta-llama/Llama-3.1-{}-Instruct", usual="8b"),
    "llama3.2": _Model(hub="meta-llama/Llama-3.2-{}-Instruct", usual="3b"),
    "llama3.3": _Model(hub="meta-llama/Llama-3.3-{}-Instruct", usual="70b"),
    "gemma2": _Model(hub="google/gemma-2-{}-it", usual="9b", sizes=_small("2b", "9b", "27b")),
    "gemma3": _Model(hub="google/gemma-3-{}-it", usual="4b", sizes=_small("1b", "4b", "12b", "27b")),
    "gemma4": _Model(hub="google/gemma-4-{}-it", usual="e4b", sizes={"26b": "26B-A4B"}),
    "qwen2.5": _Model(hub="Qwen/Qwen2.5-{}-Instruct", usual="7b"),
    "qwen2.5-coder": _Model(hub="Qwen/Qwen2.5-Coder-{}-Instruct", usual="7b"),
    "qwen3": _Model(hub="Qwen/Qwen3-{}", usual="8b", sizes={"30b": "30B-A3B", "235b": "235B-A22B"}),
    "mistral": _Model(hub="mistralai/Mistral-{}-Instruct-v0.3", usual="7b"),
    "mixtral": _Model(hub="mistralai/Mixtral-{}-Instruct-v0.1", usual="8x7b", sizes={"8x7b": "8x7B", "8x22b": "8x22B"}),
    "deepseek-r1": _Model(hub="deepseek-ai/DeepSeek-R1{}", usual="8b", sizes=_DEEPSEEK),
    "gpt-oss": _Model(hub="openai/gpt-oss-{}", usual="20b", sizes=_small("20b", "120b")),
    "phi4": _Model(hub="microsoft/phi-4", usual="14b"),
}


def hint(word: str) -> str:
    """Return what to write in place of a name of Ollama's, or "" for another word."""
    match = _FORM.fullmatch(word)
    model = None if match is None else _MODELS.get(match["name"])
    if match is None or (model is None and not match["tag"] and not word.startswith("ollama")):
        return ""
    here = "it is Ollama's name of a model"
    if model is None:
        return f"{here}: write ORGANIZATION/NAME as on the model's page of the Hugging Face hub"
    match = _SIZE.match(match["tag"] or model.usual)
    size = model.usual if match is None else match["size"].lower()
    return f"{here}: write {model.hub.format(model.sizes.get(size, size.upper()))}, its id on the Hugging Face hub"
