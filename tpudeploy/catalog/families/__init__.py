"""List the model families. A family reads a Hugging Face config, and has the configs of models that it knows."""

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
    """A family. `read(name, architecture, config)` raises NotCovered; `models` maps hub ids to their config.json."""

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
def find_model(model_id: str) -> LanguageModel | None:
    """Return the model of a hub id, or None if no family lists it."""
    config = next((family.models[model_id] for family in FAMILIES if model_id in family.models), None)
    return None if config is None else from_config(model_id, config)


def closest_model(model_id: str) -> str | None:
    """Return the hub id with the same letters and digits as `model_id`, in another case or with other separators."""
    letters = _letters(model_id)
    return next((each for family in FAMILIES for each in family.models if _letters(each) == letters), None)


def _letters(model_id: str) -> str:
    return "".join(filter(str.isalnum, model_id.lower()))


def from_text(name: str, text: str) -> LanguageModel:
    """Return the model that a config.json describes. Raise NotCovered with the reason."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise NotCovered(f"its config is not JSON ({str(cause).partition(';')[0]})") from cause
    if not isinstance(config, dict):
        raise NotCovered("its config is not a JSON object")
    return from_config(name, config)


def from_config(name: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered with the reason, or PartlyCovered with the model without one part of it."""
    refuse_foreign(config)
    architectures = config.get("architectures")
    architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    for family in FAMILIES:
        if architecture in family.architectures:
            model = _read(family, name, architecture, config)
            refuse_part(config, model)
            return model
    raise NotCovered(f"no family here covers {architecture or 'a config without `architectures`'}")


def _read(family: Family, name: str, architecture: str, config: Config) -> LanguageModel:
    """Return the model. Raise NotCovered for values of a wrong type, which are the config's fault and not ours."""
    try:
        return family.read(name, architecture, config)
    except NotCovered:
        raise
    except (AttributeError, TypeError, ValueError) as cause:
        raise NotCovered(f"its config does not have the form of {architecture} ({cause})") from cause
