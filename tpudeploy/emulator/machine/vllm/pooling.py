"""Pooling models of the stand-in: which task vLLM would resolve, and the replies of their routes.

The task doesn't come from the product's own table: the stand-in has to be able to disagree with it. Source: vLLM 0.32.0
config/model.py (runner and convert) and the protocol.py of each route. The vectors are made up of the text: the same
text has the same one.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from math import sqrt
from typing import Any

from tpudeploy.emulator.machine.vllm.arguments import Arguments

DIMENSIONS = 64  # of a made-up embedding: enough to be one, and short in a log
# What the config.json on the hub names, by a part of a repository's name; a name that no row fits generates.
ARCHITECTURES = (
    ("qwen3-embedding", "Qwen3ForCausalLM"),
    ("qwen3-reranker", "Qwen3ForCausalLM"),
    ("bge-reranker", "XLMRobertaForSequenceClassification"),
    ("bge-", "BertModel"),
    ("e5-mistral", "MistralModel"),
    ("e5-", "XLMRobertaModel"),
    ("gte-qwen2", "Qwen2ForCausalLM"),
    ("gte-", "NewModel"),
    ("-rm-", "Qwen2ForRewardModel"),
    ("sequence-classification", "BertForSequenceClassification"),
)
# Repositories with the modules of Sentence Transformers, one of which pools: vLLM makes pooling models of decoders.
SENTENCES = ("qwen3-embedding", "gte-qwen2")
SUFFIXES = (
    ("ForCausalLM", "generate"),
    ("ForConditionalGeneration", "generate"),
    ("ForSequenceClassification", "classify"),
    ("ForTokenClassification", "token_classify"),
    ("RewardModel", "token_classify"),
    ("Model", "embed"),
)


def task_of(arguments: Arguments) -> str:
    """Return the task of a server with these arguments: generate, embed, classify, score or token_classify."""
    runner, overrides = arguments.text("runner", "auto"), _overrides(arguments)
    if runner in ("generate", "draft"):
        return "generate"
    name = arguments.public_name.lower()
    task = _task_of_architecture(name, overrides)
    if task == "generate":
        return _conversion(arguments, name, is_pooling=runner == "pooling")
    has_one_label = "rerank" in name or overrides.get("num_labels") == 1 or "classifier_from_token" in overrides
    return "score" if task == "classify" and has_one_label else task


def _task_of_architecture(name: str, overrides: Mapping[str, Any]) -> str:
    architectures = overrides.get("architectures") or [each for part, each in ARCHITECTURES if part in name]
    return next((task for suffix, task in SUFFIXES if architectures and architectures[0].endswith(suffix)), "generate")


def _conversion(arguments: Arguments, name: str, *, is_pooling: bool) -> str:
    """Return what vLLM makes of a model that generates: with a runner that pools, an embedding model."""
    convert = arguments.text("convert", "auto")
    if convert in ("embed", "classify"):
        return convert
    return "embed" if is_pooling or any(part in name for part in SENTENCES) else "generate"


def _overrides(arguments: Arguments) -> Mapping[str, Any]:
    try:
        overrides = json.loads(arguments.text("hf-overrides", "{}"))
    except ValueError:
        return {}
    return overrides if isinstance(overrides, dict) else {}


def reply(task: str, path: str, body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the body of a pooling route. Raise ValueError, with the name of the field, for a request without it."""
    prefix, rows, count = REPLIES[path](body, task)
    usage = {"prompt_tokens": count, "total_tokens": count, "completion_tokens": 0, "prompt_tokens_details": None}
    whole = {"id": f"{prefix}-{zlib.crc32(json.dumps(body, sort_keys=True).encode()):032x}", "model": model}
    if path.endswith("/rerank"):
        return {**whole, "usage": {"prompt_tokens": count, "total_tokens": count}, "results": rows}
    return {**whole, "object": "list", "created": 0, "data": rows, "usage": usage}


Rows = tuple[str, list[dict[str, Any]], int]


def _embeddings(body: Mapping[str, Any], _task: str) -> Rows:
    texts = _texts(body)
    rows = [{"index": at, "object": "embedding", "embedding": _vector(text)} for at, text in enumerate(texts)]
    return "embd", rows, _count(texts)


def _pooling(body: Mapping[str, Any], task: str) -> Rows:
    texts = _texts(body)
    rows = [{"index": at, "object": "pooling", "data": _pooling_data(text, task)} for at, text in enumerate(texts)]
    return "pool", rows, _count(texts)


def _pooling_data(text: str, task: str) -> list[Any]:
    if task == "token_classify":
        return [[_share(word)] for word in text.split() or [""]]
    return _classes(text, task) if task in ("score", "classify") else _vector(text)


def _classify(body: Mapping[str, Any], task: str) -> Rows:
    texts, rows = _texts(body), []
    for at, text in enumerate(texts):
        probs = _classes(text, task)
        best = probs.index(max(probs))
        rows.append({"index": at, "label": f"LABEL_{best}", "probs": probs, "num_classes": len(probs)})
    return "classify", rows, _count(texts)


def _score(body: Mapping[str, Any], _task: str) -> Rows:
    first, second = _list(body, "text_1", "queries", "data_1"), _list(body, "text_2", "documents", "data_2")
    firsts = first * len(second) if len(first) == 1 else first
    pairs = list(zip(firsts, second, strict=True))
    rows = [{"index": at, "object": "score", "score": _share(f"{a} {b}")} for at, (a, b) in enumerate(pairs)]
    return "score", rows, _count(f"{a} {b}" for a, b in pairs)


def _rerank(body: Mapping[str, Any], _task: str) -> Rows:
    query, documents = _list(body, "query")[0], _list(body, "documents")
    rows: list[dict[str, Any]] = [
        {"index": at, "document": {"text": text, "multi_modal": None}, "relevance_score": _share(f"{query} {text}")}
        for at, text in enumerate(documents)
    ]
    rows.sort(key=lambda row: -row["relevance_score"])
    return "rerank", rows[: body.get("top_n") or len(rows)], _count(f"{query} {text}" for text in documents)


REPLIES: Mapping[str, Callable[[Mapping[str, Any], str], Rows]] = {
    "/v1/embeddings": _embeddings,
    "/pooling": _pooling,
    "/classify": _classify,
    "/score": _score,
    "/v1/score": _score,
    "/rerank": _rerank,
    "/v1/rerank": _rerank,
    "/v2/rerank": _rerank,
}


def _texts(body: Mapping[str, Any]) -> list[str]:
    if "messages" in body:
        return [" ".join(str(message.get("content", "")) for message in body["messages"])]
    return _list(body, "input")


def _list(body: Mapping[str, Any], *names: str) -> list[str]:
    """Return a field as texts, by the first of its names; a prompt may be a list of token ids too."""
    value = next((body[name] for name in names if body.get(name) not in (None, "", [])), None)
    if value is None:
        raise ValueError(names[0])
    if not isinstance(value, list):
        return [str(value)]
    return [" ".join(map(str, value))] if all(isinstance(each, int) for each in value) else [str(v) for v in value]


def _count(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _vector(text: str) -> list[float]:
    """Return a vector of length 1, as a normalized embedding has."""
    raw = [_share(f"{place} {text}") - 0.5 for place in range(DIMENSIONS)]
    length = sqrt(sum(value * value for value in raw)) or 1.0
    return [value / length for value in raw]


def _classes(text: str, task: str) -> list[float]:
    share = _share(text)
    return [share] if task == "score" else [share, 1.0 - share]


def _share(text: str) -> float:
    return zlib.crc32(text.encode()) / 2**32
