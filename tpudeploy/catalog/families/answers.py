"""Models as the engine itself answered about them: for those that no family covers, and where a family would be wrong.

The rows are written by tests/oracle/dump_engine_models.py, which runs tpu_inference's own loader and KV manager on
chips that are absent. A row holds the fields of the config.json that decide shapes, and their source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tpudeploy.catalog._engine_models import MODELS, RELEASE
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import (
    Attention,
    EngineAnswer,
    Experts,
    Implementation,
    LanguageModel,
    RecurrentState,
)

# Bytes on a chip by number of chips, where the loader of earlier releases splits the weights otherwise than RELEASE's.
# Asked as tests/oracle/dump_engine_models.py asks, with vllm-tpu 0.31.0 and transformers 5.24.0 (RELEASE's rows: 5.19):
# of 36 models, each on the most chips it takes, 32 had the same weights. 0.29.0 gave the same in the ten of these that
# were compared. 0.30.0 was not asked; it is taken to be as its neighbors.
_EARLIER = ("0.29.0", "0.30.0", "0.31.0")
_EARLIER_WEIGHTS: Mapping[str, Mapping[int, int]] = {
    "HuggingFaceTB/SmolLM3-3B": {8: 834_704_448},
    "Qwen/Qwen3-Embedding-8B": {1: 16_377_030_656, 4: 5_026_580_480, 8: 3_134_867_456},
    "Qwen/Qwen3.5-27B": {1: 54_848_269_536, 2: 27_498_805_360, 4: 13_824_073_272, 8: 7_028_650_268},
    "Qwen/Qwen3.5-9B": {1: 18_954_436_704, 4: 4_848_234_936, 8: 2_513_978_524},
}


@frozen
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


def _has_shapes(config: Mapping[str, Any], shapes: Mapping[str, Any]) -> bool:
    """Return whether `config` has all of these fields that decide shapes, in its parts too."""
    return all(
        _has_shapes(config[name], value)
        if isinstance(value, Mapping) and isinstance(config.get(name), Mapping)
        else config.get(name) == value
        for name, value in shapes.items()
        if not _LOOSE.search(name)
    )


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
            others={} if row["settings"] else dict.fromkeys(_EARLIER, _EARLIER_WEIGHTS.get(row["id"], {})),
        ),
        source=row["source"],
        unverified=(f"weights: the answer of {row.get('release', RELEASE)}'s own loader on absent chips, no boot",),
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
