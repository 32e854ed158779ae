"""The task of a model: what its flags, its architecture and its id say, in this order."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tpudeploy.catalog.tasks import resolve_task
from tpudeploy.domain.task import TASKS, Task

RERANKER = {"architectures": ["Qwen3ForSequenceClassification"], "classifier_from_token": ["no", "yes"]}
# The model's id, `serving.args`, the config.json, and the task with what decides it.
ROWS: tuple[tuple[str, dict[str, Any], dict[str, Any], Task, str], ...] = (
    ("google/gemma-4-E2B-it", {}, {}, Task.GENERATE, "family"),
    ("unsloth/Qwen3-8B-FP8", {}, {}, Task.GENERATE, "family"),
    ("google/gemma-4-E2B-it", {"runner": "pooling"}, {}, Task.EMBED, "args.runner"),
    ("google/gemma-4-E2B-it", {"convert": "classify"}, {}, Task.CLASSIFY, "args.convert"),
    ("Qwen/Qwen3-Embedding-8B", {}, {}, Task.EMBED, "name"),
    ("Qwen/Qwen3-Embedding-8B", {"runner": "pooling"}, {}, Task.EMBED, "args.runner"),
    ("Qwen/Qwen3-Embedding-8B", {"runner": "generate"}, {}, Task.GENERATE, "args.runner"),
    ("Qwen/Qwen3-Embedding-8B", {}, {"architectures": ["Qwen3ForCausalLM"]}, Task.EMBED, "model.config"),
    ("Qwen/Qwen3-Reranker-4B", {}, {}, Task.UNKNOWN, "no flag"),
    ("Qwen/Qwen3-Reranker-4B", {"hf-overrides": RERANKER}, {}, Task.SCORE, "args.hf_overrides"),
    ("Qwen/Qwen3-Reranker-4B", {"runner": "pooling"}, {}, Task.EMBED, "args.runner"),
    ("BAAI/bge-m3", {}, {}, Task.EMBED, "name"),
    ("BAAI/bge-reranker-v2-m3", {}, {}, Task.SCORE, "name"),
    ("intfloat/multilingual-e5-large", {}, {}, Task.EMBED, "name"),
    ("intfloat/e5-mistral-7b-instruct", {}, {}, Task.EMBED, "name"),
    ("Alibaba-NLP/gte-Qwen2-7B-instruct", {}, {}, Task.EMBED, "name"),
    ("google/embeddinggemma-300m", {}, {}, Task.EMBED, "name"),
    ("somebody/judge", {}, {"architectures": ["BertForSequenceClassification"]}, Task.CLASSIFY, "model.config"),
    (
        "somebody/judge",
        {},
        {"architectures": ["BertForSequenceClassification"], "num_labels": 1},
        Task.SCORE,
        "model.config",
    ),
    ("somebody/tags", {}, {"architectures": ["BertForTokenClassification"]}, Task.POOL, "model.config"),
    ("Qwen/Qwen2.5-Math-RM-72B", {}, {"architectures": ["Qwen2ForRewardModel"]}, Task.POOL, "model.config"),
    ("somebody/something", {}, {}, Task.UNKNOWN, "no flag"),
    ("somebody/something", {"runner": "pooling"}, {}, Task.POOL, "args.runner"),
    ("somebody/something", {"pooler-config": {"task": "token_embed"}}, {}, Task.POOL, "args.pooler_config"),
    ("somebody/something", {}, {"architectures": ["NewForCausalLM"]}, Task.GENERATE, "model.config"),
)


@pytest.mark.parametrize(("model_id", "settings", "config", "task", "because"), ROWS)
def test_a_task_is_what_vllm_would_resolve(
    model_id: str, settings: dict[str, Any], config: dict[str, Any], task: Task, because: str
) -> None:
    origin = resolve_task(model_id, settings, config)
    assert origin.task is task
    assert because in origin.because


@pytest.mark.parametrize(
    ("task", "tree", "text"),
    [
        (
            Task.EMBED,
            {"data": [{"embedding": [0.5, -0.25, 1, 0, 2]}]},
            "embedding of 5 dimensions: 0.5, -0.25, 1, 0, …",
        ),
        (Task.SCORE, {"data": [{"score": 0.75}]}, "score: 0.75"),
        (Task.CLASSIFY, {"data": [{"probs": [0.9, 0.1]}]}, "class probabilities: 0.9, 0.1"),
        (Task.POOL, {"data": [{"data": [[0.5], [0.1]]}]}, "pooled output of 1 dimensions: 0.5"),
    ],
)
def test_a_reply_is_proven_by_its_numbers(task: Task, tree: dict[str, Any], text: str) -> None:
    assert TASKS[task].trials[0].prove(tree).text == text


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"data": []},
        {"data": [{"embedding": []}]},
        {"data": [{"embedding": [math.nan]}]},
        {"data": [{"embedding": None}]},
        {"data": [{"embedding": "AAAA"}]},
        {"choices": [{"message": {"content": "hello"}}]},
    ],
)
def test_a_reply_without_finite_numbers_proves_nothing(tree: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="embedding"):
        TASKS[Task.EMBED].trials[0].prove(tree)
