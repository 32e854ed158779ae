"""Ask a release's own loader what each model of a list takes on a chip, and compare with our rules of families."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.catalog.families import answers
from tpudeploy.domain import strict_json
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.model import Implementation, NotCovered
from tpudeploy.features.compile.engine_process import ask
from tpudeploy.features.compile.rows import compact, is_the_engines, question
from tpudeploy.sizing.weights import weights_bytes_per_chip

SHIPPED = "shipped"
CHIPS = (1, 2, 4, 8)
# Llama's class has a counter, Gemma 3's vision tower its positions as integers.
BESIDE = 16_386
# By architecture, what a config.json has as `model_type`: the families' own rows leave it out.
_MODEL_TYPES: Mapping[str, str] = {
    "Gemma3ForCausalLM": "gemma3_text",
    "Gemma3ForConditionalGeneration": "gemma3",
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model to ask about: its config.json, and the settings of a profile that the engine needs for it."""

    model_id: str
    config: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def title(self) -> str:
        return answers.title(self.model_id, self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What the loader answered by model and number of chips, what stopped it, and where our rule differs."""

    table: Mapping[str, Mapping[str, int | str]]
    problems: tuple[str, ...]
    comparisons: int
    differences: tuple[str, ...]


def catalogue_models() -> tuple[Model, ...]:
    """Return the models of the catalogue: those with an answer of the engine, and each shape that a family lists."""
    rows = (
        Model(model_id=answer.model_id, config=answers.config_of(answer.model_id), settings=answer.settings)
        for model_id in answers.ids()
        for answer in answers.answers(model_id)
    )
    shapes: dict[str, Model] = {}
    for family in families.FAMILIES:
        for model_id, config in family.models.items():
            kind = _MODEL_TYPES.get(str(config["architectures"][0]))
            if kind is not None:
                shape = json.dumps({**config, "max_position_embeddings": 0}, sort_keys=True)
                whole = {"torch_dtype": "bfloat16", **config, "model_type": kind}
                shapes.setdefault(shape, Model(model_id=model_id, config=whole, settings={}))
    listed = {answer.model_id for answer in (one for model_id in answers.ids() for one in answers.answers(model_id))}
    return (*rows, *(model for model in shapes.values() if model.model_id not in listed))


def read(text: bytes) -> tuple[Model, ...]:
    """Return the models of a list, a JSON object a line. Raise `errors.UsageError` for another form."""
    models = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = strict_json.parse(line)
        except ValueError as cause:
            raise UsageError(f"Line {number} of the list is not JSON: {cause}.") from cause
        match row:
            case {"id": str(model_id), "config": {"architectures": [str(), *_]} as config, **rest}:
                settings = rest.get("settings", {})
            case _:
                settings = None
        if not isinstance(settings, dict):
            raise UsageError(
                f"Line {number} of the list is not a model.",
                hint='Write {"id": "ORGANIZATION/NAME", "config": its config.json}, with "settings" if it needs some.',
            )
        models.append(Model(model_id=model_id, config=config, settings=settings))
    return tuple(models)


def weigh(python: str, models: Sequence[Model], *, seconds: float) -> Weights:
    """Return what the loader of `python` makes of the models. Raise as `engine_process.ask`."""
    hbm = catalog.generation("v6e").most_bytes
    pairs = [(model, chips) for model in models for chips in CHIPS]
    questions = [question(model.config, model.settings, chips, hbm_bytes=hbm) for model, chips in pairs]
    with tempfile.TemporaryDirectory(prefix="tpudeploy-engine-") as scratch:
        rows = list(ask(python, questions, seconds=seconds, log=Path(scratch) / "log"))
    if len(rows) != len(pairs):
        raise QueryFailed(f"The engine's Python gave {len(rows):,} answers to {len(pairs):,} questions.")
    each: dict[str, dict[int, Mapping[str, Any]]] = {}
    for (model, chips), row in zip(pairs, rows, strict=True):
        each.setdefault(model.title, {})[chips] = row
    return judge(models, each)


def judge(models: Sequence[Model], each: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Weights:
    """Return the table of the answers by title and number of chips, and how our rules compare."""
    table: dict[str, Mapping[str, int | str]] = {}
    problems: list[str] = []
    comparisons, differences = 0, []
    for model in models:
        rows = each[model.title]
        table[model.title] = _on_chips(model, rows)
        for chips, row in rows.items():
            words = str(row.get("refusal", ""))
            if words and not is_the_engines(words):
                problems.append(f"{model.title} on {chips} chips: {words[:200]}")
        for chips, ours, theirs in _by_rule(model, rows):
            comparisons += 1
            if not 0 <= theirs - ours <= BESIDE:
                differences.append(f"{model.title} on {chips} chips: {theirs:,} bytes, by our rule {ours:,}")
    return Weights(
        table={title: row for title, row in table.items() if row},
        problems=tuple(problems),
        comparisons=comparisons,
        differences=tuple(differences),
    )


def _on_chips(model: Model, rows: Mapping[int, Mapping[str, Any]]) -> Mapping[str, int | str]:
    """Return the bytes on a chip, or the engine's refusal, by the number of chips."""
    listed = answers.known_model(model.model_id)
    count: int | str = "" if listed is None or listed.answer is None else listed.answer.parameters
    source = {"id": model.model_id, "settings": model.settings, "source": "", "config": model.config}
    row = compact(source, rows, count)
    if "weights" not in row:
        return {str(chips): row["refusal"] for chips in sorted(rows)} if row["refusal"] else {}
    words = {**row["weights"], **row.get("refusals", {})}
    return {str(chips): words[str(chips)] for chips in sorted(rows) if str(chips) in words}


def _by_rule(model: Model, rows: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Yield the number of chips, the bytes by the rule of the model's family, and those of the loader.

    A model with an answer of the engine in the catalogue is not sized by a rule.
    """
    if answers.answers(model.model_id):
        return
    try:
        rule = families.from_config(model.model_id, model.config)
    except NotCovered:
        return
    for chips, row in rows.items():
        answer = row.get("answer")
        if answer is not None and not _is_uneven(rule.kv_heads, chips):
            engine = EngineSettings(tensor_parallel=chips, max_model_len=answer["max_model_len"])
            layout = families.run_by(rule, Implementation(answer["implementation"]))
            yield chips, sum(weights_bytes_per_chip(layout, engine).values()), answer["weights_bytes_per_chip"]


def _is_uneven(heads: Sequence[int], chips: int) -> bool:
    return any(count % chips and chips % count for count in heads)
