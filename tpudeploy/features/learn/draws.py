"""Configurations drawn at random, with our own figures for each, and what differs in the engine's answers to them.

The arithmetic and the spelling of flags are ours; the answers are those of the engine's own objects in a probe.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tpudeploy.catalog import families
from tpudeploy.catalog.families import FAMILIES
from tpudeploy.catalog.flags import Flag, Inexpressible, Style, ValueType, express, flag_of
from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.model import Implementation, LanguageModel
from tpudeploy.sizing.graphs import request_buckets, token_buckets
from tpudeploy.sizing.kv import block_size, blocks_per_request, layout

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A question of one kind, and what we say; `differs` returns what is wrong with the engine's answer, or ""."""

    kind: str
    row: Any
    differs: Callable[[Row], str]

    def line(self) -> str:
        return json.dumps([self.kind, self.row])


def draws(release: Row, count: int, seed: str) -> Iterator[Draw]:
    """Yield `count` draws of each kind that the release's engine can answer."""
    rng = Random(seed)  # noqa: S311 - a sample that can be drawn again, and no secret
    if "rules" in release:
        version = release["release"]
        yield from (_ladder_draw(rng, version) for _ in range(count))
        yield from (_cache_draw(rng, version) for _ in range(count))
    rows = release["flags"]
    names = [name for name in rows if name not in _TAKEN_APART]
    accepted = 0
    while accepted < count:
        flag = flag_of(name := rng.choice(names), rows[name])
        value = rng.choice((*_samples(flag), *(choice.upper().replace("_", "-") for choice in flag.choices)))
        try:
            words = express(flag, value)
        except Inexpressible:
            continue  # we refuse it
        accepted += 1
        yield Draw(kind="words", row=list(words), differs=_flag_difference(flag, value))


# KV cache.

_LENGTHS = (2_048, 4_096, 8_192, 16_384, 20_000, 32_768, 65_536, 131_072)
_WINDOWED = {
    "architectures": ["MistralForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4_096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 32_000,
    "max_position_embeddings": 32_768,
    "sliding_window": 4_096,
}
_HALF_LANES = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 16,
    "hidden_size": 2_048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8_192,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
}
_DESCRIBED = {"example/windowed": _WINDOWED, "example/half-lanes": _HALF_LANES}


def _cache_draw(rng: Random, version: str) -> Draw:
    names = [name for family in FAMILIES for name in family.models]
    name = rng.choice([*names, *_DESCRIBED, *_DESCRIBED])
    model = families.from_config(name, _DESCRIBED[name]) if name in _DESCRIBED else families.find_model(name)
    assert model is not None
    sizes = [chips for chips in (1, 2, 4, 8) if _can_split(model, chips)]
    engine = EngineSettings(
        tensor_parallel=rng.choice(sizes),
        kv_dtype=rng.choice(("auto", "auto", "fp8", "fp8_e5m2")),
        block_size=rng.choice((None, None, None, 16, 32, 64, 128, 256)),
        max_model_len=rng.choice(_LENGTHS),
        max_num_seqs=rng.choice((1, 8, 16, 64, 128, 256, 512)),
        max_num_batched_tokens=rng.choice((512, 2_048, 4_096, 8_192, 16_384)),
        release=version,
    )
    chips = engine.tensor_parallel
    available = rng.randrange(2 << 30, 26 << 30) * chips
    layers = [[kind.kv_heads, kind.head_dim, kind.window] for kind in model.attention for _ in range(kind.cached)]
    if len(model.attention) > 1:
        rng.shuffle(layers)
    row = {
        "model": name,
        "tp": chips,
        "kv_dtype": engine.kv_dtype,
        "block_size": engine.block_size,
        "max_model_len": engine.max_model_len,
        "max_num_seqs": engine.max_num_seqs,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "avail": available,
        "jax": model.implementation is Implementation.JAX,
        "layers": layers,
    }
    block = block_size(engine)
    shape = layout(model, engine, block)
    blocks = available // (chips * shape.bytes_per_block)
    needed = blocks_per_request(shape, engine, block, engine.max_model_len)

    def differs(answer: Row) -> str:
        if answer.get("block_size") != block:
            return f"blocks of {answer.get('block_size')} tokens, ours of {block}"
        if "error" in answer:
            # The engine refuses a cache that holds no request of full length, and so do we.
            return "" if blocks <= needed and not answer.get("is_fault") else str(answer["error"])
        return "" if answer["num_blocks"] == blocks else f"{answer['num_blocks']} blocks, ours {blocks}"

    return Draw(kind="kv", row=row, differs=differs)


def _can_split(model: LanguageModel, chips: int) -> bool:
    return all(
        (kind.kv_heads % chips == 0 or chips % kind.kv_heads == 0) and kind.heads % chips == 0
        for kind in model.attention
    )


# Ladders.


def _ladder_draw(rng: Random, version: str) -> Draw:
    row = {
        "least": rng.choice((8, 16, 16, 16, 32, 64)),
        "most": rng.choice((rng.randrange(64, 20_000), 128, 512, 2_048, 2_496, 4_096, 8_192)),
        "gap": rng.choice((0, 0, 0, 64, 100, 128, 256, 512, 1_024, 2_048)),
        "seqs": rng.randrange(1, 600),
    }
    engine = EngineSettings(
        tensor_parallel=1,
        max_model_len=8_192,
        max_num_batched_tokens=row["most"],
        padding_gap=row["gap"],
        min_token_bucket=row["least"],
        release=version,
    )
    ours = {"tokens": list(token_buckets(engine, version)), "requests": list(request_buckets(row["seqs"]))}

    def differs(answer: Row) -> str:
        for part, sizes in ours.items():
            if answer.get(part) != sizes:
                return f"{part} {answer.get(part, answer)}, ours {sizes}"
        return ""

    return Draw(kind="ladders", row=row, differs=differs)


# Flags.

_TAKEN_APART = {"config", "lora-modules"}  # a file that vLLM opens, and words that become objects
_NUMBERS = (0, 1, -1, 16, 2**70, 0.5, -0.5, 4.0, 1e-7, 0.1 + 0.2)
_TEXTS = (
    *("", " ", "-", "--", "-x", "-1", "-0.5", "--port", "--a.b c", "a b", "=x", "a=b", "@file", "%s", "'\"`$HOME\\"),
    *("line\nbreak", "ünï ☃ 🙂", "16k", "16K", "25.6k", "auto", "None", "null", "true", "1_000", "{}", '{"a": 1}'),
)
_LISTS: tuple[list[Any], ...] = (["a"], ["a", "b"], ["-a"], ["-1", "-2"], ["a b", "", "c=d"], [1, 2], [0.5, 1])
_MAPPINGS: tuple[dict[str, Any], ...] = ({}, {"image": 4}, {"z": 1, "a": {"deep": [1, 2.5, None, True, "-x", "ü\n"]}})


def _samples(flag: Flag) -> Sequence[Any]:
    if flag.style in (Style.TOGGLE, Style.SWITCH):
        return (True, False)
    return (*_TEXTS, *_NUMBERS, *_LISTS, *_MAPPINGS, *flag.choices)


def _flag_difference(flag: Flag, value: Any) -> Callable[[Row], str]:
    key = flag.name.replace("-", "_")

    def differs(answer: Row) -> str:
        options = answer.get("read")
        if options is None:
            return f"--{flag.name} {value!r} is refused: {str(answer.get('error'))[-200:]}"
        if not set(options) <= {key, _positive(key)}:
            return f"--{flag.name} {value!r} sets {', '.join(options)}"
        if key not in options:
            return ""  # the value is the default, or that of the flag's opposite
        if flag.name == "reasoning-parser" and options[key] == value:
            return ""  # releases before 0.32 keep the word `None`
        ours = _read(flag, value)
        is_equal = _is_equal(options[key], ours)
        return "" if is_equal else f"--{flag.name} {value!r} is read as {options[key]!r}"

    return differs


def _positive(key: str) -> str:
    """Return the option that the opposite spelling of a toggle sets: `disable-x` is `enable-x` turned off."""
    pairs = {"disable_": "enable_", "enable_": "disable_"}
    return next((other + key.removeprefix(own) for own, other in pairs.items() if key.startswith(own)), key)


def _read(flag: Flag, value: Any) -> Any:
    """Return what the value means to the flag, by no code that spells it."""
    if isinstance(value, bool):
        return value
    if flag.name == "device-ids":  # one word, which vLLM takes apart
        parts = [part.strip() for part in str(value).split(",")]
        return [int(part) if part.isdigit() else part for part in parts]
    if flag.name == "reasoning-parser" and str(value).lower() == "none":
        return ""
    if flag.style in (Style.WORDS, Style.REPEATED):
        return [_read_word(flag, item) for item in (value if isinstance(value, list) else [value])]
    return _read_word(flag, value)


def _read_word(flag: Flag, value: Any) -> Any:
    match flag.value_type:
        case ValueType.INT:
            return int(value)
        case ValueType.SIZE | ValueType.SIZE_OR_AUTO:
            return _SIZES.get(value) or int(value)
        case ValueType.FLOAT:
            return float(value)
        case ValueType.OBJECT | ValueType.ARRAY:
            return json.loads(value) if isinstance(value, str) else value
        case ValueType.TEXT_OR_OBJECT if isinstance(value, dict) or str(value).strip()[:1] == "{":
            return json.loads(value) if isinstance(value, str) else value
        case ValueType.KEYWORD:
            return str(value).lower().replace("-", "_")
    return str(value)


_SIZES = {"16k": 16_000, "16K": 16_384, "25.6k": 25_600, "auto": -1}


def _is_equal(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float) and math.isnan(theirs):
        return math.isnan(ours)
    if theirs == ours:
        return isinstance(theirs, bool) == isinstance(ours, bool)
    if isinstance(ours, list) and isinstance(theirs, list) and theirs == sorted({str(item) for item in ours}):
        return True  # a set
    return bool(theirs == _absent(ours))


def _absent(value: Any) -> Any:
    """Of an option that may be absent, vLLM reads the words `` and `None` as absent."""
    if isinstance(value, list):
        return [_absent(item) for item in value]
    return None if value in ("", "None") else value
