"""Draws random profiles of single mistakes and good values, and holds `validate` against a real vLLM's configuration.

    VLLM_PYTHON=PYTHON-WITH-VLLM python tests/oracle/draw_profiles.py [-n 1000] [-seed 1]

Prints false accepts (we accept, vLLM refuses without touching a device) and false refusals (the other way round), and
exits with 1 if there are any. What we refuse because of TPU or of the endpoint is counted apart, and so is what vLLM's
CPU build refuses because of its own platform, of a package that it lacks, or of a file or network that is not there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tpudeploy.catalog import flags, values
from tpudeploy.catalog.flags import Flag, Style, ValueType
from tpudeploy.config.owned import FLAG_OF_KEY, SECRET_OF_FLAG
from tpudeploy.config.parse import parse
from tpudeploy.config.reader import Unreadable
from tpudeploy.config.rules.engine import UNREACHABLE
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ProfileInvalid

HERE = Path(__file__).parent

# Refused because of TPU or of the endpoint, of which vLLM's configuration knows nothing.
_OURS = re.compile(r"TPU1302|TPU1304|TPU1318|not supported with data_parallel_size|does not run on TPU")
# What a CPU machine without network, files and optional packages refuses, and another one would not.
_SURROUNDINGS = re.compile(
    r"by cpu|on CPU|CPU backend|CUDA|cuda|[Tt]riton is|No module named|not installed|is not available|offline|connect to|"
    r"huggingface|Hugging Face|Repo id|No such file|not found in|does not appear to have a file|can't find|Errno|"
    r"libnuma|platform|import|not a valid path|world size|instantiate the backend tokenizer|Model Runner V1|Model Runner V2|"
    r"StrictDataclassFieldValidationError"
)
_NOT_DRAWN = {"config", *SECRET_OF_FLAG, *FLAG_OF_KEY.values(), *UNREACHABLE}
_KEYS: dict[str, tuple[Any, ...]] = {
    "max_model_len": ("auto", "16k", "4K", -1, 4096, 0, -2, "16q", 10**9),
    "max_num_batched_tokens": ("4K", "8k", 4096, 0, -5, "many"),
    "max_num_seqs": (1, 64, 0, -1, "many", 1.5),
    "kv_cache_dtype": ("auto", "float16", "bfloat16", "fp8", "fp88", "int4"),
    "dtype": ("auto", "half", "bfloat16", "fp16", "bf16"),
    "hbm_utilization": (0.5, 1, 0, -0.1, 1.5, "high"),
    "block_size": (16, 32, 0, -16),
}


class Case(NamedTuple):
    """One setting of `serving`, or one flag with its value, on a profile that is otherwise right."""

    key: str
    name: str
    value: Any


class Answer(NamedTuple):
    case: Case
    diagnostics: tuple[Diagnostic, ...]
    refusal: str | None


class OneFile:
    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, path: str) -> bytes:
        if path != "p.yaml":
            raise Unreadable("does not exist", missing=True)
        return self.text.encode()

    def resolve(self, base: str, relative: str) -> str:  # noqa: ARG002 - there is one folder
        return relative


def text_of(case: Case) -> str:
    serving: dict[str, Any] = {"image": f"vllm/vllm-tpu:v{flags.VLLM_VERSION}"}
    serving |= {case.name: case.value} if case.key else {"args": {case.name.replace("-", "_"): case.value}}
    tree = {"version": 1, "name": "demo", "model": {"id": "google/gemma-4-E2B-it"}, "tpu": {"type": "v6e-1"}}
    return yaml.safe_dump({**tree, "serving": serving})


def errors_of(case: Case) -> tuple[Diagnostic, ...]:
    try:
        parse("p.yaml", OneFile(text_of(case)), environment={})
    except ProfileInvalid as refusal:
        return refusal.diagnostics
    return ()


def words_of(case: Case) -> tuple[str, ...] | None:
    """The words as they would be passed; None where no command line can say the value."""
    flag = flags.find(case.key or case.name)
    assert flag is not None
    try:
        return flags.express(flags.with_any_choice(flag), case.value)
    except flags.Inexpressible:
        # A value of another type: as a person would type it.
        plain = isinstance(case.value, str | int | float) and flag.style in (Style.VALUE, Style.WORDS)
        return (f"--{flag.name}={case.value}",) if plain and not isinstance(case.value, bool) else None


def cases(rng: random.Random) -> Iterator[Case]:
    drawn = [flag for name in flags.names() if name not in _NOT_DRAWN and (flag := flags.find(name))]
    named = [flag for flag in drawn if values.schema(flag.name) is not None]
    while True:
        kind = rng.random()
        if kind < 0.1:
            key = rng.choice(list(_KEYS))
            yield Case(key=FLAG_OF_KEY["serving", key], name=key, value=rng.choice(_KEYS[key]))
            continue
        flag = rng.choice(drawn if kind < 0.4 else named)
        yield Case(key="", name=flag.name, value=value_of(flag, rng))


def value_of(flag: Flag, rng: random.Random) -> Any:
    schema = values.schema(flag.name)
    if schema is not None and rng.random() < 0.8:
        return of_schema(schema, rng, flag.name)
    if flag.choices:
        return word_like(rng.choice(flag.choices), rng)
    if flag.style in (Style.SWITCH, Style.TOGGLE):
        return rng.choice([True, False, "yes", 1]) if flag.style is Style.TOGGLE else rng.choice([True, 3])
    by_type: dict[ValueType, tuple[Any, ...]] = {
        ValueType.INT: (0, 1, 7, "many", 1.5),
        ValueType.FLOAT: (0.5, 1, 0, "high"),
        ValueType.SIZE: (1024, "4k", "1K", "4q"),
        ValueType.OBJECT: ({}, {"a": 1}, [1], "{broken"),
        ValueType.ARRAY: ([], ["*"], {"a": 1}),
    }
    return rng.choice(by_type.get(flag.value_type, ("text", "x y")))


def word_like(word: Any, rng: random.Random) -> Any:
    """The word, or a misspelling of it."""
    text = str(word)
    if rng.random() < 0.5 or len(text) < 3:
        return word
    at = rng.randrange(len(text) - 1)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :] + rng.choice(["", "x"])


def of_schema(schema: dict[str, Any], rng: random.Random, name: str = "") -> Any:  # noqa: PLR0911 - one for each type
    """A value of the schema, or one with a mistake in it."""
    match schema:
        case {"type": "nullable", "schema": below}:
            return of_schema(below, rng, name)
        case {"type": "union", "choices": choices}:
            return of_schema(rng.choice(choices), rng, name)
        case {"type": "literal" | "choices" | "keyword", "expected": expected}:
            return word_like(rng.choice(expected), rng)
        case {"type": "int" | "float", **bounds}:
            edges = [bounds[key] for key in ("ge", "gt", "le", "lt") if key in bounds] or [1]
            edge = rng.choice(edges)
            return rng.choice([edge, edge + 1, edge - 1, "many", True][: 5 if name else 4])
        case {"type": "bool"}:
            return rng.choice([True, False, "maybe", 7])
        case {"type": "str"}:
            return rng.choice(["text", 5])
        case {"type": "list" | "set", "items_schema": items}:
            return [of_schema(items, rng)]
        case {"type": "dict", "values_schema": below}:
            keys = ["image", "video"] if name == "limit-mm-per-prompt" else ["a"]
            return {key: of_schema(below, rng) for key in keys[: rng.randint(1, 2)]}
        case {"type": "typed-dict", "fields": fields}:
            return fields_of(fields, rng, name)
    return {}


# What makes the rest of a mapping right, so that there is a single mistake at most.
_BESIDE: dict[str, dict[str, Any]] = {
    "speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
    "kv-transfer-config": {"kv_connector": "ExampleConnector", "kv_role": "kv_both"},
    "watermark-config": {"key": 1},
    "weight-transfer-config": {"backend": "nccl"},
}


def fields_of(fields: dict[str, Any], rng: random.Random, name: str) -> dict[str, Any]:
    beside = dict(_BESIDE.get(name, {}))
    field = rng.choice(sorted(fields))
    if rng.random() < 0.2:
        return {**beside, word_like(field, rng) if len(field) > 3 else f"{field}s": 1}
    return {**beside, field: of_schema(fields[field]["schema"], rng)}


def ask(python: str, commands: list[tuple[str, ...]]) -> list[str | None]:
    asked = subprocess.run(
        [python, str(HERE / "configure_with_vllm.py")],
        input="".join(json.dumps(words) + "\n" for words in commands),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=HERE,  # a stray module elsewhere must not shadow one of torch's
        check=True,
    )
    return [json.loads(line) for line in asked.stdout.splitlines()]


def kind_of(answer: Answer) -> str:
    said = " ".join(f"{d.code} {d.message}" for d in answer.diagnostics)
    if answer.diagnostics and answer.refusal is None:
        return "refused for TPU or the endpoint" if _OURS.search(said) else "FALSE REFUSAL"
    if answer.diagnostics:
        return "refused by both"
    if answer.refusal is None:
        return "accepted by both"
    return "refused by the CPU build's surroundings" if _SURROUNDINGS.search(answer.refusal) else "FALSE ACCEPT"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=1000, help="how many profiles")
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-all", action="store_true", help="print what the surroundings refuse, too")
    given = parser.parse_args()
    python = os.environ.get("VLLM_PYTHON")
    if not python:
        sys.exit("Set VLLM_PYTHON to a Python that has vLLM: its CPU build is enough.")
    drawn: list[tuple[Case, tuple[str, ...]]] = []
    for case in cases(random.Random(given.seed)):
        words = words_of(case)
        if words is not None:
            drawn.append((case, words))
        if len(drawn) == given.n:
            break
    refusals = ask(python, [words for _, words in drawn])
    answers = [Answer(case, errors_of(case), said) for (case, _), said in zip(drawn, refusals, strict=True)]
    counts = Counter(map(kind_of, answers))
    shown = {"FALSE ACCEPT", "FALSE REFUSAL", *(["refused by the CPU build's surroundings"] if given.all else [])}
    for answer in answers:
        if kind_of(answer) in shown:
            ours = "; ".join(d.message for d in answer.diagnostics) or "accepted"
            theirs = " ".join((answer.refusal or "accepted").split())
            print(
                f"{kind_of(answer)}: {answer.case.name}: {answer.case.value!r}\n  ours: {ours}\n  vLLM: {theirs[:300]}"
            )
    for kind, count in counts.most_common():
        print(f"{count:6,} {kind}")
    print(f"{counts['FALSE ACCEPT']} false accepts and {counts['FALSE REFUSAL']} false refusals of {len(answers):,}")
    return 1 if counts["FALSE ACCEPT"] or counts["FALSE REFUSAL"] else 0


if __name__ == "__main__":
    sys.exit(main())
