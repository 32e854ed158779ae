"""The words after `vllm serve`, read as vLLM's own parser reads them; refusals in its words, exit code 2."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tpudeploy.catalog.flags import Flag, Style, ValueType, find

USAGE = "usage: vllm serve [model_tag] [options]\nvllm serve: error: "
NUMBER = re.compile(r"-\d+$|-\d*\.\d+$")
SIZE = re.compile(r"-?\d+(\.\d+)?[kKmMgGtT]?|None")


class VllmUsageError(Exception):
    """What argparse says before it exits with 2."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """`flags`: canonical name → its last words; a switch has none, `--no-x` is ("no",)."""

    model: str
    flags: Mapping[str, tuple[str, ...]]

    def but(self, instead: Mapping[str, str]) -> Self:
        """Return the same arguments with other values for these flags."""
        return replace(self, flags={**self.flags, **{name: (word,) for name, word in instead.items()}})

    def has(self, name: str) -> bool:
        return name in self.flags and self.flags[name] != ("no",)

    @property
    def public_name(self) -> str:
        """Return the model's name, wherever its weights are: for a folder, the first name it is served by."""
        names = self.flags.get("served-model-name")
        return names[0] if names and self.model.startswith("/") else self.model

    def text(self, name: str, default: str = "") -> str:
        """Return the last word of a flag; `None` is vLLM's word for its own default."""
        word = self.flags[name][-1] if self.flags.get(name) else "None"
        return default if word == "None" else word


def parse(words: Sequence[str]) -> Arguments:
    flags: dict[str, tuple[str, ...]] = {}
    positional: list[str] = []
    unknown: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _is_flag(word):
            positional.append(word)
            continue
        name, equals, value = word.partition("=")
        flag, negated = _find_flag(name)
        if name == "--model":
            if not equals and rest:
                value = rest.pop(0)
            positional.insert(0, value)
        elif flag is None:
            unknown.append(word)
        else:
            values = [value] if equals else _take_words(flag, rest, negated=negated)
            flags[flag.name] = _check_values(flag, name, values, negated=negated, whole="." not in name)
    if unknown or positional[1:]:
        raise VllmUsageError(f"unrecognized arguments: {' '.join([*unknown, *positional[1:]])}")
    return Arguments(positional[0] if positional else "Qwen/Qwen3-0.6B", flags)


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-" and not NUMBER.match(word) and " " not in word.partition("=")[0]


def _find_flag(name: str) -> tuple[Flag | None, bool]:
    """Return the flag of `--name`, `-alias`, `--no-name` or `--name.field`, and whether it is negated."""
    bare = name.lstrip("-").partition(".")[0].replace("_", "-")
    flag = find(bare)
    if flag is not None:
        return flag, False
    positive = find(bare.removeprefix("no-")) if bare.startswith("no-") else None
    return (positive, True) if positive and positive.style is Style.TOGGLE else (None, False)


def _take_words(flag: Flag, rest: list[str], *, negated: bool) -> list[str]:
    """Return the words that belong to the flag, and remove them from `rest`."""
    most = {Style.SWITCH: 0, Style.TOGGLE: 0, Style.WORDS: len(rest)}.get(flag.style, 1)
    words_of_flag: list[str] = []
    while rest and len(words_of_flag) < most and not negated and not _is_flag(rest[0]):
        words_of_flag.append(rest.pop(0))
    return words_of_flag


def _check_values(flag: Flag, name: str, values: list[str], *, negated: bool, whole: bool) -> tuple[str, ...]:
    if negated:
        return ("no",)
    if flag.style in {Style.SWITCH, Style.TOGGLE}:
        if values:
            raise VllmUsageError(f"argument {name}: ignored explicit argument {values[0]!r}")
        return ()
    if not values and flag.style is not Style.OPTIONAL:
        raise VllmUsageError(
            f"argument {name}: expected {'at least one' if flag.style is Style.WORDS else 'one'} argument"
        )
    for word in values if whole else ():
        _check(flag, name, word)
    return tuple(values)


def _check(flag: Flag, name: str, word: str) -> None:
    keyword = word.lower().replace("-", "_") if flag.value_type is ValueType.KEYWORD else word
    if flag.choices and keyword not in flag.choices:
        choices = ", ".join(map(repr, flag.choices))
        raise VllmUsageError(f"argument {name}: invalid choice: {word!r} (choose from {choices})")
    if flag.style is Style.JSON and flag.value_type in {ValueType.OBJECT, ValueType.ARRAY}:
        _check_json(name, word)
    reads = NUMERIC.get(flag.value_type)
    if reads and not flag.choices and not reads.fullmatch(word):
        raise VllmUsageError(f"argument {name}: invalid {flag.value_type.value} value: {word!r}")


def _check_json(name: str, word: str) -> None:
    try:
        json.loads(word)
    except ValueError as error:
        raise VllmUsageError(f"argument {name}: Value {word} cannot be converted to <function loads>.") from error


NUMERIC: Mapping[ValueType, re.Pattern[str]] = {
    ValueType.INT: re.compile(r"[+-]?\d+|None"),
    ValueType.FLOAT: re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|None"),
    ValueType.SIZE: SIZE,
    ValueType.SIZE_OR_AUTO: re.compile(SIZE.pattern + "|auto"),
}

UNITS = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30, "t": 10**12, "T": 2**40}


def read_size(word: str) -> int:
    """Return the number that a word is: `16k` is 16000, `16K` is 16384."""
    unit = UNITS.get(word[-1:])
    return int(float(word[:-1]) * unit) if unit else int(word)
