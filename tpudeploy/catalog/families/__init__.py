"""List the model families. A family reads a Hugging Face config, and has the configs of models that it knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from tpudeploy.catalog.families import answers, gemma3, gemma4, llama, mistral, qwen
from tpudeploy.catalog.families.reading import (
    ON_TORCHAX,
    QUANTIZED,
    UNCOMPARED,
    Config,
    quantized,
    refuse_foreign,
    refuse_part,
    text,
)
from tpudeploy.catalog.families.variants import Variant, method_in, variant_of
from tpudeploy.catalog.quantization import MLX
from tpudeploy.domain.model import Implementation, LanguageModel, NotCovered, PartlyCovered


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """Return the model of a hub id, or None if no family lists it or its base.

    Raise PartlyCovered for a checkpoint whose quantization has an unknown size.
    """
    config = _config_of(model_id)
    if config is not None:
        return from_config(model_id, config)
    model = answers.known_model(model_id)
    if model is not None:
        return model
    relation = variant(model_id)
    if relation is None:
        return None
    base = _config_of(relation.base)
    if base is None:
        model = answers.known_model(relation.base)
        if model is not None and relation.fields:
            raise PartlyCovered(QUANTIZED, as_copy(model, model_id, relation.base), only_adds=False)
        return None if model is None else as_copy(model, model_id, relation.base)
    try:
        model = from_config(model_id, {**base, **relation.fields})
    except PartlyCovered as refusal:
        model = as_copy(refusal.model, model_id, relation.base)
        raise PartlyCovered(str(refusal), model, only_adds=refusal.only_adds) from refusal
    return as_copy(model, model_id, relation.base)


def as_copy(model: LanguageModel, model_id: str, base: str) -> LanguageModel:
    """Return the model of a copy's id, with the caveat that nothing but the id says so."""
    caveat = f"weights and layers: those of {base}, by the id alone; `model.config` settles it"
    return replace(model, name=model_id, unverified=(*model.unverified, caveat))


def run_by(model: LanguageModel, implementation: Implementation) -> LanguageModel:
    """Return a plain decoder as vLLM's own class lays it out, if that is asked for; else the model as it is."""
    is_plain = model.architecture in (*llama.ARCHITECTURES, *qwen.ARCHITECTURES)
    if implementation is Implementation.JAX or model.implementation is implementation or not is_plain:
        return model
    caveats = tuple(ON_TORCHAX if each == UNCOMPARED else each for each in model.unverified)
    return replace(model, implementation=implementation, is_head_whole=False, unverified=caveats)


def variant(model_id: str) -> Variant | None:
    """Return the listed model that an id is a copy of, and what its config.json has beside; None for another id."""
    return variant_of(model_id, _ids_by_name())


def fields_of(model_id: str) -> Config:
    """Return what an id tells of its config.json beside that of the model it is a copy of."""
    relation = variant(model_id)
    return {} if relation is None else relation.fields


def is_listed(model_id: str) -> bool:
    """Return whether the catalogue has the shapes of a model, or the engine's answer about it, by its id."""
    return known_model(model_id) is not None or bool(answers.answers(model_id))


def known_model(model_id: str) -> LanguageModel | None:
    """Return the model of a hub id as far as it is covered, or None: for its family, never for its bytes."""
    try:
        return find_model(model_id)
    except PartlyCovered as refusal:
        return refusal.model


def quantization_of(model_id: str, config_json: str | None = None) -> str:
    """Return the method by which a checkpoint is quantized, by its config or its id, or "" if neither says so."""
    relation = None if config_json is not None else variant(model_id)
    config = config_of(config_json) if relation is None else relation.fields
    section = config.get("quantization_config") or config.get("compression_config")
    if isinstance(section, Mapping):
        return str(section.get("quant_method", MLX if section else ""))
    return "" if config_json is not None else method_in(model_id)


def config_of(text: str | None) -> Config:
    """Return the fields of a config.json, none without one or for another text."""
    if text is None:
        return {}
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def position_of(config: Config) -> int | None:
    """Return the length of the model's positions, or None where the config has no such number."""
    value = text(config).get("max_position_embeddings")
    return value if type(value) is int and value > 0 else None


def _config_of(model_id: str) -> Config | None:
    return next((family.models[model_id] for family in FAMILIES if model_id in family.models), None)


@cache
def _ids_by_name() -> Mapping[str, str]:
    """Return the listed ids by their names, without the organization and in lower case."""
    return {each.rpartition("/")[2].lower(): each for each in ids()}


def ids() -> tuple[str, ...]:
    """Return the hub ids that are listed."""
    return (*answers.ids(), *(each for family in FAMILIES for each in family.models))


def base_of(model_id: str) -> str | None:
    """Return the listed model that a copy or a fine-tune is made of, by the id alone; None for a quantized one."""
    relation = variant(model_id)
    return None if relation is None or relation.fields else relation.base


def closest_model(model_id: str) -> str | None:
    """Return the hub id with the same letters and digits as `model_id`, in another case or with other separators."""
    letters = _letters(model_id)
    return next((each for each in ids() if _letters(each) == letters), None)


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
        return quantized(config, family.read(name, architecture, config))
    except NotCovered:
        raise
    except (AttributeError, TypeError, ValueError) as cause:
        raise NotCovered(f"its config does not have the form of {architecture} ({cause})") from cause
