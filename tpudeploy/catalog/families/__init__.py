"""FAMILIES: the table of model families. A family reads a Hugging Face config, and lists the models whose it knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache

from tpudeploy.catalog.families import gemma3, gemma4, llama, mistral, qwen
from tpudeploy.catalog.families.reading import Config, refuse_foreign, refuse_part
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import LanguageModel, NotCovered


@frozen
class Family:
    """`read(name, architecture, config)` raises NotCovered; `models` maps a hub id to what its config.json says."""

    name: str
    architectures: tuple[str, ...]
    read: Callable[[str, str, Config], LanguageModel]
    models: Mapping[str, Config]


FAMILIES = (
    Family(name="Gemma 4", architectures=gemma4.ARCHITECTURES, read=gemma4.read, models=gemma4.MODELS),
    Family(name="Gemma 3", architectures=gemma3.ARCHITECTURES, read=gemma3.read, models=gemma3.MODELS),
    Family(name="Llama", architectures=llama.ARCHITECTURES, read=llama.read, models=llama.MODELS),
    Family(name="Qwen", architectures=qwen.ARCHITECTURES, read=qwen.read, models=qwen.MODELS),
    Family(name="Mistral", architectures=mistral.ARCHITECTURES, read=mistral.read, models=mistral.MODELS),
)


@cache
def known(model_id: str) -> LanguageModel | None:
    """The model of that hub id, or None where no family lists it."""
    config = next((family.models[model_id] for family in FAMILIES if model_id in family.models), None)
    return None if config is None else from_config(model_id, config)


def from_text(name: str, text: str) -> LanguageModel:
    """The model that a config.json describes. Raise NotCovered, with the reason."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise NotCovered(f"its config is no JSON ({str(cause).partition(';')[0]})") from cause
    if not isinstance(config, dict):
        raise NotCovered("its config is no JSON object")
    return from_config(name, config)


def from_config(name: str, config: Config) -> LanguageModel:
    """Raise NotCovered, with the reason; PartlyCovered, with the rest of the model, where it is about one part."""
    refuse_foreign(config)
    named = config.get("architectures")
    architecture = str(named[0]) if isinstance(named, list) and named else ""
    for family in FAMILIES:
        if architecture in family.architectures:
            model = _read(family, name, architecture, config)
            refuse_part(config, model)
            return model
    raise NotCovered(f"no family here covers {architecture or 'a config without `architectures`'}")


def _read(family: Family, name: str, architecture: str, config: Config) -> LanguageModel:
    """A list where a mapping belongs, or text where a number does, is a reason and not a fault of ours."""
    try:
        return family.read(name, architecture, config)
    except NotCovered:
        raise
    except (AttributeError, TypeError, ValueError) as cause:
        raise NotCovered(f"its config is not of the form that {architecture} has ({cause})") from cause
