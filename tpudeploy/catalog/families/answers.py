"""Models as the engine itself answered about them: for those that no family covers, and where a family would be wrong.

The rows are written by tests/oracle/dump_engine_models.py, which runs tpu_inference's own loader and KV manager on
chips that are absent. A row holds the fields of the config.json that decide shapes, and their source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tpudeploy.catalog import releases
from tpudeploy.catalog._engine_models import MODELS, RELEASE
from tpudeploy.catalog.families.reading import EXPERTS
from tpudeploy.domain.model import (
    Attention,
    EngineAnswer,
    Experts,
    Implementation,
    LanguageModel,
    RecurrentState,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A row: with these `settings` of a profile, the model as it's loaded, or the engine's refusal of any split.

    `settings` are flags by canonical name and environment variables. The refusal is in the engine's words.
    """

    model_id: str
    settings: Mapping[str, Any]
    model: LanguageModel | None
    refusal: str = ""


@cache
def answers(model_id: str) -> tuple[ModelAnswer, ...]:
    """Return the rows of a hub id, those with the most settings first; none for an id that is not listed."""
    name = model_id.lower()
    rows = [_answer(row) for row in _rows() if row["id"].lower() == name]
    return tuple(sorted(rows, key=lambda answer: -len(answer.settings)))


def answer_for(model_id: str, settings: Mapping[str, Any]) -> ModelAnswer | None:
    """Return the row that fits the settings of a profile, or None."""
    return next((answer for answer in answers(model_id) if _fits(answer.settings, settings)), None)


def answer_of_config(config: Mapping[str, Any], settings: Mapping[str, Any]) -> ModelAnswer | None:
    """Return the row whose config has the shapes of this one, or None: a fine-tune has those of its base."""
    same = [row for row in _rows() if _has_shapes(config, row["config"])]
    rows = [_answer(row) for row in sorted(same, key=lambda row: -len(row["settings"]))]
    return next((answer for answer in rows if _fits(answer.settings, settings)), None)


def title(model_id: str, settings: Mapping[str, Any]) -> str:
    """Return the name of a model with these settings in the files of releases."""
    return " ".join((model_id, *(f"{name}={value}" for name, value in sorted(settings.items()))))


def of_release(answer: ModelAnswer, release: str | None) -> ModelAnswer:
    """Return the answer with the weights that the loader of this release makes of the model, where it was asked."""
    row = releases.weights(release).get(title(answer.model_id, answer.settings), {})
    if answer.model is None or answer.model.answer is None or not row:
        return answer
    newest = answer.model.answer
    weights = {int(chips): size for chips, size in row.items() if isinstance(size, int)}
    refusals = {int(chips): words for chips, words in row.items() if isinstance(words, str)}
    name = newest.release if release is None else f"{releases.ENGINE} {release}"
    own = replace(
        newest,
        release=name,
        weights={chips: size for chips, size in {**newest.weights, **weights}.items() if chips not in refusals},
        refusals={chips: words for chips, words in {**newest.refusals, **refusals}.items() if chips not in weights},
    )
    notes = tuple(_caveat(name) if each == _caveat(newest.release) else each for each in answer.model.unverified)
    return replace(answer, model=replace(answer.model, answer=own, unverified=notes))


def _caveat(release: str) -> str:
    return f"weights: the answer of {release}'s own loader on absent chips, no boot"


@cache
def known_model(model_id: str) -> LanguageModel | None:
    """Return the model of a listed id, whatever the settings with which the engine takes it."""
    return next((answer.model for answer in reversed(answers(model_id)) if answer.model is not None), None)


def config_of(model_id: str) -> Mapping[str, Any]:
    """Return the fields of a listed model's config.json, or none."""
    return next((row["config"] for row in _rows() if row["id"].lower() == model_id.lower()), {})


def ids() -> tuple[str, ...]:
    """Return the ids that are listed."""
    return tuple(dict.fromkeys(row["id"] for row in _rows()))


@cache
def _rows() -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(line) for line in MODELS.splitlines() if line)


def _fits(needs: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return all(str(settings.get(name, "")).lower() == str(value).lower() for name, value in needs.items())


# Fields that a fine-tune may change, and that decide no shape.
_LOOSE = re.compile(r"max_position|dtype|rope_|_token_(id|index)|_eps|multiplier|scaling|transformers_version")


# Fields with which a config is that of another model, if a listed model's does not have them.
_OTHERS = ("compression_config", "kv_lora_rank", "mamba_d_state", "quantization_config", *EXPERTS)


def _has_shapes(config: Mapping[str, Any], shapes: Mapping[str, Any]) -> bool:
    """Return whether `config` has all of these fields that decide shapes, in its parts too."""
    return not any(config.get(name) and name not in shapes for name in _OTHERS) and all(
        _has_shapes(config[name], value)
        if isinstance(value, Mapping) and isinstance(config.get(name), Mapping)
        else config.get(name) == value
        for name, value in {**_by_default(config), **shapes}.items()
        if not _LOOSE.search(name)
    )


def _by_default(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a config has to say of its heads, as far as it says it, where a listed model's leaves it out."""
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    if type(heads) is not int or type(hidden) is not int or heads < 1:
        return {}
    plain = {"head_dim": hidden // heads, "num_key_value_heads": heads}
    return {name: value for name, value in plain.items() if config.get(name)}


def _answer(row: Mapping[str, Any]) -> ModelAnswer:
    has_model = "weights" in row
    return ModelAnswer(
        model_id=row["id"],
        settings=row["settings"],
        model=model_of(row) if has_model else None,
        refusal=row.get("refusal", ""),
    )


def model_of(row: Mapping[str, Any]) -> LanguageModel:
    """Return the model of a row that has weights."""
    implementation = Implementation(row["implementation"])
    experts = row.get("experts")
    return LanguageModel(
        name=row["id"],
        architecture=row["architecture"],
        implementation=implementation,
        layers=row["layers"],
        hidden=row["hidden"],
        vocabulary=row["vocabulary"],
        is_tied=True,
        max_position=row["max_position"],
        attention=tuple(_attention(row)),
        feed_forward=(),
        experts=None if experts is None else Experts(**experts),
        states=tuple(RecurrentState(**state) for state in row.get("states", ())),
        # How many tokens an item takes is not part of the answer.
        item_tokens={"image": 0} if row.get("is_multimodal") else {},
        linear_dtype=row.get("linear_dtype", ""),
        answer=EngineAnswer(
            release=row.get("release", RELEASE),
            parameters=row["parameters"],
            active=row["active"],
            checkpoint_bytes=row["checkpoint_bytes"],
            weights={int(chips): size for chips, size in row["weights"].items()},
            refusals={int(chips): words for chips, words in row.get("refusals", {}).items()},
            is_pooling=row.get("is_pooling", False),
        ),
        source=row["source"],
        unverified=(_caveat(row.get("release", RELEASE)),),
    )


def _attention(row: Mapping[str, Any]) -> Iterator[Attention]:
    """Yield each kind of attention. An encoder's layers are not cached."""
    for layers, kv_heads, head_dim, window in row["attention"]:
        is_cached = not row.get("is_encoder")
        yield Attention(
            layers=layers,
            cached=layers if is_cached else 0,
            heads=row["heads"],
            kv_heads=kv_heads,
            head_dim=head_dim,
            window=window,
            is_latent=bool(row.get("is_latent")),
        )
