"""Check `model.id`: it names weights that a vLLM on TPU can load, not a model that is sold as an API."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.config import codes, ollama
from tpudeploy.config.diagnose import quoted
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules.violation import Violation
from tpudeploy.config.schema import ProfileSpec

_ID: Path = ("model", "id")
# Names of models that are sold as an API, as their vendors' pages list them. gpt-oss and gemma have weights.
# One pattern, whose groups name the vendors: each pattern that validate compiles takes its time.
_API = re.compile(
    r"^(?:(?P<OpenAI>(?:openai/)?(?:gpt-[345](?:[.o-].*)?|chatgpt-.*|o[134](?:-.*)?|text-embedding-.*))"
    r"|(?P<Anthropic>anthropic/.*|claude-.*)"
    r"|(?P<Google>(?:(?:google|models)/)?gemini-.*)"
    r"|(?P<xAI>(?:xai/|x-ai/)?grok-[34].*)"
    r"|(?P<DeepSeek>deepseek-(?:chat|reasoner))"
    r"|(?P<Mistral>mistral-(?:tiny|small|medium|large)-latest))$"
)
# tpu_inference's platform lists tpu_int8, compressed-tensors, awq, fp8 and mxfp4.
_GGUF = (".gguf", "-gguf", "_gguf")
# Names of diffusion models, which make pictures and films.
_PICTURES = ("stable-diffusion", "sdxl", "/flux.", "cogvideo", "hunyuanvideo", "/wan2.", "qwen-image", "kolors")
# Of the hub's first years: ids without an organization.
_CANONICAL = re.compile(r"^(?:distil)?(?:gpt2|bert|roberta|t5|xlnet|albert|electra|opt|bloom)(?:-.*)?$")


def loadable(profile: ProfileSpec) -> Iterator[Violation]:
    """Report an id whose weights cannot be loaded: of an API, in a format of another engine, or without its owner."""
    name = profile.model.id
    if not name or name.startswith(("/", "gs://")):
        return
    word = name.lower()
    api = _API.search(word)
    if api is not None:
        message = f"{quoted(name)} is a model of {api.lastgroup}'s API, whose weights are not published"
        hint = "name a model of the Hugging Face hub, such as google/gemma-4-E2B-it"
        yield Violation(codes.NOT_A_MODEL, _ID, message, hint)
    elif word.endswith(_GGUF):
        message = f"{quoted(name)} has its weights as GGUF, which vLLM does not load on TPU"
        hint = "name the repository of the model's safetensors, which its page links to"
        yield Violation(codes.NOT_A_MODEL, _ID, message, hint)
    elif any(part in word for part in _PICTURES):
        message = f"{quoted(name)} is a diffusion model, which makes pictures or films: vLLM does not serve it"
        hint = "name a model that answers with text, vectors or scores"
        yield Violation(codes.NOT_A_MODEL, _ID, message, hint)
    elif word.startswith("ollama/"):
        message = f"{quoted(name)} is a name of Ollama's, not an id of the Hugging Face hub"
        yield Violation(codes.NOT_A_MODEL, _ID, message, _hint_of_ollama(word))
    elif "/" not in name and not _CANONICAL.search(word):
        message = f"{quoted(name)} has no organization, which almost every id of the Hugging Face hub has"
        hint = _hint_of_ollama(word) or "write ORGANIZATION/NAME as on the model's page"
        yield Violation(codes.NOT_A_MODEL, _ID, message, hint, is_warning=True)


def _hint_of_ollama(word: str) -> str:
    return ollama.hint(word)


def mounted(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a folder that the container does not have: a path is read inside it."""
    folder = profile.model.id
    if not folder.startswith("/"):
        return
    targets = [target.rstrip("/") for target in (profile.serving.volumes or {}).values()]
    if not any(folder == target or folder.startswith(f"{target}/") for target in targets):
        message = f"No volume of the container has {quoted(folder)}, unless the image has it"
        hint = f"add serving.volumes: {{/host/path: {folder}}}; the machine starts with an empty disk"
        yield Violation(codes.NOT_A_MODEL, _ID, message, hint, is_warning=True)
