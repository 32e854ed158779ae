"""The task of a model as vLLM resolves it: by `runner` and `convert`, the architecture, or the words of its id.

Source: vLLM 0.32.0 config/model.py (_get_runner_type, _get_convert_type, _SUFFIX_TO_DEFAULTS). What it reads from the
hub beside the config, such as the modules of Sentence Transformers, is told by the id alone here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tpudeploy.catalog import families
from tpudeploy.domain.task import Task, TaskOrigin

# The first that fits an architecture counts, as in vLLM; None is a model that generates.
_SUFFIXES: tuple[tuple[str, Task | None], ...] = (
    ("ForCausalLM", None),
    ("ForConditionalGeneration", None),
    ("ChatModel", None),
    ("LMHeadModel", None),
    ("ForTextEncoding", Task.EMBED),
    ("EmbeddingModel", Task.EMBED),
    ("ForSequenceClassification", Task.CLASSIFY),
    ("ForTokenClassification", Task.POOL),
    ("ClassificationModel", Task.CLASSIFY),
    ("ForRewardModeling", Task.POOL),
    ("RewardModel", Task.POOL),
    ("Model", Task.EMBED),
)
# Words of an id. The order decides: `bge-reranker` is no embedding model.
_WORDS = (
    (re.compile(r"rerank"), Task.SCORE),
    (re.compile(r"reward|(^|[-/])p?rm([-.]|$)"), Task.POOL),
    (re.compile(r"classifier|sequence-classification"), Task.CLASSIFY),
    (re.compile(r"embed|(^|[-/])(bge|e5|gte|minilm|simcse|stella|arctic-embed|sfr)([-.]|$)"), Task.EMBED),
    (re.compile(r"(^|[-/])(multilingual-e5|all-minilm|all-mpnet)"), Task.EMBED),
)
# The official checkpoints of this reranker are generating models until `hf_overrides` makes them classifiers.
_GENERATES = re.compile(r"(^|/)qwen3-reranker")
_OF_POOLER: Mapping[str, Task] = {
    "embed": Task.EMBED,
    "classify": Task.CLASSIFY,
    "token_embed": Task.POOL,
    "token_classify": Task.POOL,
}


def resolve_task(model_id: str, settings: Mapping[str, Any], config: Mapping[str, Any]) -> TaskOrigin:
    """Return the task. `settings` are `serving.args` by canonical name, `config` is that of `model.config` or empty."""
    return _by_flags(model_id, settings, config) or _by_id(model_id)


def _by_flags(model_id: str, settings: Mapping[str, Any], config: Mapping[str, Any]) -> TaskOrigin | None:
    runner, convert = str(settings.get("runner") or "auto"), str(settings.get("convert") or "auto")
    pooler = _OF_POOLER.get(str(_mapping(settings, "pooler-config").get("task")))
    by_words = _of_words(model_id)
    if runner in ("generate", "draft"):
        return TaskOrigin(task=Task.GENERATE, because=f"args.runner: {runner}")
    if pooler is not None:
        return TaskOrigin(task=pooler, because="args.pooler_config")
    if convert in ("embed", "classify"):
        is_score = convert == "classify" and by_words is Task.SCORE
        task = Task.SCORE if is_score else {"embed": Task.EMBED, "classify": Task.CLASSIFY}[convert]
        return TaskOrigin(task=task, because=f"args.convert: {convert}")
    overrides = _mapping(settings, "hf-overrides")
    architecture = _first(overrides) or _first(config)
    if architecture:
        source = "args.hf_overrides" if _first(overrides) else "model.config"
        task = _of_architecture(architecture, by_words, {**config, **overrides}, is_pooling=runner == "pooling")
        return TaskOrigin(task=task, because=f"{architecture} in {source}")
    if runner == "pooling":
        return TaskOrigin(task=_pooling_without_architecture(model_id, by_words), because="args.runner: pooling")
    return None


def _by_id(model_id: str) -> TaskOrigin:
    by_words = _of_words(model_id)
    if by_words is not None and not _GENERATES.search(model_id.lower()):
        return TaskOrigin(task=by_words, because=f"the name of {model_id}")
    if by_words is None and families.known_model(model_id) is not None:
        return TaskOrigin(task=Task.GENERATE, because=f"the family of {model_id}")
    return TaskOrigin(task=Task.UNKNOWN, because="the catalogue does not know the model, and no flag says so")


def _of_architecture(name: str, by_words: Task | None, config: Mapping[str, Any], *, is_pooling: bool) -> Task:
    task = next((task for suffix, task in _SUFFIXES if name.endswith(suffix)), None)
    if task is None:
        # Sentence Transformers' own repositories have decoders of which they take an embedding.
        return Task.EMBED if is_pooling or by_words is Task.EMBED else Task.GENERATE
    has_one_label = config.get("num_labels") == 1 or by_words is Task.SCORE or "classifier_from_token" in config
    return Task.SCORE if task is Task.CLASSIFY and has_one_label else task


def _pooling_without_architecture(model_id: str, by_words: Task | None) -> Task:
    """Return the task of a model that pools. `/pooling` is there for any, so it proves one that nothing else tells."""
    if _GENERATES.search(model_id.lower()) or (by_words is None and families.known_model(model_id) is not None):
        return Task.EMBED  # what vLLM converts a decoder to
    return by_words or Task.POOL


def _of_words(model_id: str) -> Task | None:
    name = model_id.lower()
    return next((task for words, task in _WORDS if words.search(name)), None)


def _first(config: Mapping[str, Any]) -> str:
    architectures = config.get("architectures")
    return str(architectures[0]) if isinstance(architectures, list) and architectures else ""


def _mapping(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = settings.get(name)
    return value if isinstance(value, Mapping) else {}
