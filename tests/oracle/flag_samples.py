"""Yields values to try for each flag: good ones and such with one mistake, of every kind that its type can hold.

Nothing here says which is which: the real vLLM does. The same values are drawn from at random and tried one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpudeploy.catalog import values
from tpudeploy.catalog.flags import Flag, Style, ValueType

# What a flag that takes any text, as far as its parser knows, is given by users who know or do not know better.
_BY_FLAG: Mapping[str, tuple[Any, ...]] = {
    "chat-template": ("/chat.jinja", "{{ messages }}", "chatml"),
    "cpu-offload-params": (["a.b"], "a b"),
    "custom-histogram-buckets": (
        *({"vllm:time_to_first_token_seconds": [0.1, 1]}, {"ttft": [0.1]}, {"time_to_first_token": [0.1, 1]}),
        *({"time_to_first_token": [1, 0.1]}, {"time_to_first_token": []}, {"time_to_first_token": [True]}),
    ),
    "data-parallel-address": ("10.0.0.2", "somewhere"),
    "default-chat-template-kwargs": ({"enable_thinking": False},),
    "device-ids": ("0", "0,1", "0,0", "gpu", "0,a", "-1"),
    "disable-access-log-for-endpoints": ("/health", "/health,/metrics", "health"),
    "distributed-executor-backend": ("mp", "uni", "ray", "external_launcher", "MP", "my.Executor", "nope"),
    "fingerprint-value": ("abc",),
    "generation-config": ("auto", "vllm", "/folder"),
    "kv-transfer-config": ({"kv_connector": "TPUConnector", "kv_role": "kv_both"},),
    "limit-mm-per-prompt": ({"image": 4}, {"image": -1}, {"images": 1}, {"audio": 0, "video": 0}, {"image": "many"}, 4),
    "logging-config": ({"level": "DEBUG"},),
    "lora-modules": (
        "sql=/lora/sql",
        ["sql=/lora/sql", "b=/b"],
        {"name": "a", "path": "/a"},
        {"name": "a"},
        "sql",
        "=",
    ),
    "lora-target-modules": (["q_proj"], "all"),
    "middleware": ("my.module.Class", "Class"),
    "mm-processor-kwargs": ({"num_crops": 4},),
    "numa-bind-cpus": ("0-3", ["0-3", "4-7"], "0,2", "a-b", "3-0", ""),
    "numa-bind-nodes": (0, [0, 0], [-1]),
    "otlp-traces-endpoint": ("http://collector:4317", "grpc://c:1"),
    "override-generation-config": ({"temperature": 0.5}, {"temprature": 0.5}),
    "reasoning-parser-plugin": ("/plugin.py",),
    "response-role": ("assistant", "robot"),
    "served-model-name": ("gemma", ["gemma", "gemma-4"], "a b"),
    "show-hidden-metrics-for-version": ("0.31", "0.30.2", "soon"),
    "spec-method": ("ngram", "eagle3"),
    "spec-model": ("google/gemma-4-E2B-it-assistant", "/draft"),
    "spec-tokens": (3,),
    "tokenizer": ("google/gemma-4-E2B-it", "/tokenizer"),
    "tool-server": ("demo", "localhost:8888"),
    "worker-cls": ("auto", "my.Worker"),
}
_BY_TYPE: Mapping[ValueType, tuple[Any, ...]] = {
    ValueType.INT: (0, 1, 7, -1, -2, 100_000, "7", "many", 1.5, True),
    ValueType.FLOAT: (0, 0.5, 1, 2, -1, "0.5", "high", True),
    ValueType.SIZE: (0, 1, 1024, -1, "4k", "1K", "4q", "4.5K", "many"),
    ValueType.SIZE_OR_AUTO: (4096, "auto", "16k", "4K", -1, 0, -2, "16q", 10**9),
    ValueType.OBJECT: ({}, {"a": 1}, [1], "{broken", "text", 3),
    ValueType.ARRAY: ([], ["*"], {"a": 1}, "text"),
    ValueType.TEXT: ("text", "x y", 5, 1.5, True, ["a", "b"]),
    ValueType.KEYWORD: ("text", 5),
    ValueType.TEXT_OR_OBJECT: ("text", {"a": 1}, 5),
}
# What makes the rest of a mapping right, so that there is a single mistake at most.
_BESIDE: Mapping[str, dict[str, Any]] = {
    "kv-transfer-config": {
        "kv_connector": "TPUConnector",
        "kv_connector_module_path": "tpu_inference.distributed.tpu_connector",
        "kv_role": "kv_both",
    },
    "speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
    "watermark-config": {"key": 1},
    "weight-transfer-config": {"backend": "nccl"},
}
_MOST_DEEP = 3


def samples(flag: Flag) -> list[Any]:
    """Return every value to try for the flag, without repetition."""
    samples: list[Any] = [*_BY_FLAG.get(flag.name, ())]
    schema = values.schema(flag.name)
    if schema is not None:
        samples += of_schema(schema, flag.name)
    if flag.choices:
        samples += words(flag.choices)
    elif flag.style is Style.TOGGLE:
        samples += [True, False, "yes", 1]
    elif flag.style is Style.SWITCH:
        samples += [True, 3, "yes"]
    elif schema is None or flag.value_type not in (ValueType.TEXT, ValueType.KEYWORD):
        samples += _BY_TYPE[flag.value_type]
    return list({repr(value): value for value in samples}.values())


def words(expected: Sequence[Any]) -> list[Any]:
    """The words themselves, the first one in capitals, and two misspellings."""
    texts = [word for word in expected if isinstance(word, str)]
    wrong = [misspelt(word) for word in sorted(texts, key=len)[-2:] if len(word) > 3]
    return [*expected, *(word.upper() for word in texts[:1]), *wrong, *(["nonsense", 5] if texts else [])]


def misspelt(word: str) -> str:
    """Two letters in the middle the wrong way round, or one too many where they are the same."""
    at = len(word) // 2
    turned = word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]
    return turned if turned != word else word + word[-1]


def of_schema(schema: Mapping[str, Any], name: str = "", depth: int = 0) -> Iterator[Any]:  # noqa: C901 - a branch a type
    """Yield values of the schema, and such with one mistake in them."""
    match schema:
        case {"type": "nullable", "schema": below}:
            yield from of_schema(below, name, depth)
        case {"type": "union", "choices": choices}:
            for choice in choices:
                yield from of_schema(choice, name, depth)
        case {"type": "literal" | "choices" | "keyword", "expected": expected}:
            yield from words(expected)
        case {"type": "int" | "float" as kind, **bounds}:
            edges = [bounds[key] for key in ("ge", "gt", "le", "lt") if key in bounds]
            yield from (value for edge in (edges or [1]) for value in (edge - 1, edge, edge + 1))
            yield from ("many", 1.5, True) if depth < _MOST_DEEP - 1 and kind == "int" else ("many",)
        case {"type": "bool"}:
            yield from (True, "maybe") if depth else (True, False, "true", "maybe", 7)
        case {"type": "str"}:
            yield from ("text", 5)
        case {"type": "list" | "set" | "tuple", "items_schema": items}:
            below = items[0] if isinstance(items, list) else items
            yield from ([value] for value in of_schema(below, "", depth + 1))
            yield from ([], "text")
        case {"type": "dict", "values_schema": below}:
            yield from ({"a": value} for value in of_schema(below, "", depth + 1))
            yield from ({}, "text")
        case {"type": "typed-dict", "fields": fields}:
            yield from fields_of(fields, name, depth)
        case {"type": "any"}:
            yield from ("text", {"a": 1})


def fields_of(fields: Mapping[str, Any], name: str, depth: int) -> Iterator[Any]:
    beside = _BESIDE.get(name, {})
    yield from (beside, "text", [1])
    for field, described in fields.items():
        if depth < _MOST_DEEP:
            yield from ({**beside, field: value} for value in of_schema(described["schema"], "", depth + 1))
        if depth < _MOST_DEEP and len(field) > 3:
            yield {**beside, misspelt(field): 1}
    for field in beside:
        yield {key: value for key, value in beside.items() if key != field}
