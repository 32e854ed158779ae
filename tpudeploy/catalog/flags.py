"""Express values as flags of `vllm serve`, and reject values that a flag cannot express. Not what a value does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from tpudeploy.catalog import closest, releases
from tpudeploy.catalog._spelling import ValueType, spell
from tpudeploy.catalog.releases import NEWEST as VLLM_VERSION

__all__ = [
    "VLLM_VERSION",
    "Flag",
    "Inexpressible",
    "Style",
    "ValueType",
    "advice",
    "express",
    "find",
    "guess",
    "names",
    "with_any_choice",
]


class Style(StrEnum):
    """The shape of a flag on the command line."""

    SWITCH = "switch"  # --x
    TOGGLE = "toggle"  # --x or --no-x
    VALUE = "value"  # --x word
    JSON = "json"  # --x '{"one": "argument"}'
    WORDS = "words"  # --x word word
    REPEATED = "repeated"  # --x word --x word
    OPTIONAL = "optional"  # --x or --x word


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A flag by its canonical name, e.g. `max-num-seqs`. With empty `choices`, it takes any value of the type."""

    name: str
    style: Style
    value_type: ValueType
    choices: tuple[str, ...]
    aliases: tuple[str, ...]


class Inexpressible(ValueError):
    """The flag cannot express this value; the message says what the flag takes."""


@lru_cache(maxsize=1024)  # each rule looks up each flag of a profile
def find(name: str, release: str | None = None) -> Flag | None:
    """Return a release's flag of a name or alias without leading dashes; `_` and `-` are the same."""
    canonical = _canonical_names(release).get(name.replace("_", "-"))
    return None if canonical is None else flag_of(canonical, releases.table(release)["flags"][canonical])


def names(release: str | None = None) -> Iterable[str]:
    rows: Mapping[str, object] = releases.table(release)["flags"]
    return iter(rows)


def advice(name: str, release: str | None = None) -> str:
    """Return what to write instead of a name that `find` does not know, or ""."""
    bare = name.lstrip("-").replace("_", "-")
    head, _, rest = bare.partition(".")
    flag, positive = find(head, release), _negated(bare, release)
    if bare == "model":
        return "The model is `model.id`."
    if rest and flag and flag.value_type is ValueType.OBJECT:
        return f"Write a mapping: `{_key(flag)}: {{{rest.replace('-', '_')}: …}}`."
    if positive is not None:
        return f"Write `{_key(positive)}: false`."
    near = nearest(name, release)
    return f"Did you mean `{_key(near)}`?" if near else ""


def nearest(name: str, release: str | None = None) -> Flag | None:
    """Return the flag that was probably meant by a name that `find` does not know, never its opposite."""
    bare = name.lstrip("-").replace("_", "-")
    switch = _negated(bare, release)
    if switch is not None:
        return switch
    of_same_sense = [other for other in names(release) if _is_negative(other) == _is_negative(bare)]
    return find(bare.partition(".")[0], release) or find(closest(bare, of_same_sense) or "", release)


def removal(name: str, release: str | None = None) -> FlagRemoval | None:
    """Return what earlier releases say of a flag or a variable that this one has not, or None if none had it."""
    own = name if name.isupper() else name.lstrip("-").replace("_", "-")
    removed = releases.table(release)["removed"]
    row = removed.get(own) or removed.get(own.removeprefix("no-"))
    if row is None:
        return None
    last, instead = row
    return FlagRemoval(last=last, instead=instead or "leave it out: no successor is known")


def _negated(bare: str, release: str | None) -> Flag | None:
    """Return the switch that `no-…` turns off, also where the rest is misspelled."""
    if not bare.startswith("no-"):
        return None
    rest = bare.removeprefix("no-")
    positive = find(rest, release) or find(closest(rest, names(release)) or "", release)
    return positive if positive is not None and positive.style is Style.TOGGLE else None


def _is_negative(name: str) -> bool:
    return name.startswith(("no-", "disable-", "skip-"))


def express(flag: Flag, value: object) -> tuple[str, ...]:
    """Return the words that make vLLM read this JSON-like value. Raise Inexpressible. None is not passed at all.

    Text is passed unchanged, so `16k` and `None` mean here what they mean on vLLM's command line.
    """
    return () if value is None else _WRITERS[flag.style](flag, value)


def guess(name: str, value: object) -> Flag:
    """Return a flag that the table lacks, in the style that its value suggests: for images of other versions."""
    style, value_type = Style.VALUE, ValueType.TEXT
    match value:
        case bool():
            style, value_type = Style.TOGGLE, ValueType.BOOL
        case float():
            value_type = ValueType.FLOAT
        case list():
            style = Style.WORDS
        case dict():
            style, value_type = Style.JSON, ValueType.OBJECT
    return Flag(name=name.replace("_", "-"), style=style, value_type=value_type, choices=(), aliases=())


def with_any_choice(flag: Flag) -> Flag:
    """Return the flag without its choices, because another version may have other ones."""
    return replace(flag, choices=()) if flag.choices else flag


class FlagRemoval(NamedTuple):
    """`last` is the last release that is known to have had the name, `instead` what to do now, as a clause."""

    last: str
    instead: str


@lru_cache(maxsize=8)
def _canonical_names(release: str | None) -> Mapping[str, str]:
    """Return the name of a flag by each of its names."""
    rows = releases.table(release)["flags"].items()
    return {alias: name for name, row in rows for alias in (name, *(row[2] if len(row) > _NAMED else ()))}


_NAMED = 2  # columns of a row without aliases


def flag_of(name: str, row: Sequence[Any]) -> Flag:
    """Return the flag of a release's row: style, type, aliases and choices, the last two only where there are any."""
    style, value_type, *lists = row
    aliases, choices = (*lists, (), ())[:2]
    return Flag(
        name=name,
        style=Style(style),
        value_type=ValueType(value_type),
        choices=tuple(choices),
        aliases=tuple(aliases),
    )


def _key(flag: Flag) -> str:
    """Return the flag's name as profiles write it."""
    return flag.name.replace("-", "_")


def _switch(flag: Flag, value: object) -> tuple[str, ...]:
    if value is not True:
        raise _mismatch(flag, value)
    return (f"--{flag.name}",)


def _toggle(flag: Flag, value: object) -> tuple[str, ...]:
    if not isinstance(value, bool):
        raise _mismatch(flag, value)
    return (f"--{flag.name}" if value else f"--no-{flag.name}",)


def _value(flag: Flag, value: object) -> tuple[str, ...]:
    word = _word(flag, value)
    # argparse drops a bare `--` even after `=`, and vLLM expects a config file after the lone word `--config`.
    if word == "--" or (flag.name == "config" and word.startswith("-")):
        raise _looks_like_a_flag(flag, word)
    return (f"--{flag.name}={word}",) if word.startswith("-") else (f"--{flag.name}", word)


def _words(flag: Flag, value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    if len(items) == 1:
        return _value(flag, items[0])
    if not items:
        raise _mismatch(flag, value)
    words = [_word(flag, item) for item in items]
    for word in words:
        if word.startswith("-") and not _DASHED_WORD.fullmatch(word):
            raise _looks_like_a_flag(flag, word)
    return (f"--{flag.name}", *words)


def _repeated(flag: Flag, value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(word for item in items for word in _value(flag, item))


def _optional(flag: Flag, value: object) -> tuple[str, ...]:
    return (f"--{flag.name}",) if value is True else _value(flag, value)


_WRITERS: Mapping[Style, Callable[[Flag, object], tuple[str, ...]]] = {
    Style.SWITCH: _switch,
    Style.TOGGLE: _toggle,
    Style.VALUE: _value,
    Style.JSON: _value,
    Style.WORDS: _words,
    Style.REPEATED: _repeated,
    Style.OPTIONAL: _optional,
}

_DASHED_WORD = re.compile("-[0-9]*")  # the dashed words that argparse accepts as values without `=`


def _word(flag: Flag, value: object) -> str:
    try:
        word = spell(flag.value_type, value)
    except (TypeError, ValueError) as cause:
        raise _mismatch(flag, value) from cause
    keyword = word.lower().replace("-", "_") if flag.value_type is ValueType.KEYWORD else word
    if flag.choices and keyword not in flag.choices:
        raise _mismatch(flag, value)
    return word


_TAKES_STYLE: Mapping[Style, str] = {
    Style.SWITCH: "only `true`, and has no opposite",
    Style.TOGGLE: "`true` or `false`",
    Style.WORDS: "a list with at least one item, each {}",
    Style.REPEATED: "a list, each item {}",
    Style.OPTIONAL: "`true` or {}",
}

_TAKES_TYPE: Mapping[ValueType, str] = {
    ValueType.TEXT: "text",
    ValueType.INT: "a whole number",
    ValueType.SIZE: "a whole number, `16k` (16000) or `16K` (16384)",
    ValueType.SIZE_OR_AUTO: "a whole number, `16k` (16000), `16K` (16384) or `auto`",
    ValueType.FLOAT: "a finite number",
    ValueType.OBJECT: "a mapping",
    ValueType.ARRAY: "a list",
    ValueType.TEXT_OR_OBJECT: "text or a mapping",
}


def _mismatch(flag: Flag, value: object) -> Inexpressible:
    choices = ", ".join(f"`{choice}`" for choice in flag.choices)
    word = f"one of {choices}" if choices else _TAKES_TYPE.get(flag.value_type, "")
    takes = _TAKES_STYLE.get(flag.style, "{}").format(word)
    return Inexpressible(f"`--{flag.name}` takes {takes}; not {_describe(value)}.")


def _looks_like_a_flag(flag: Flag, word: str) -> Inexpressible:
    return Inexpressible(f"`--{flag.name}` cannot have the value `{word}` here: vLLM would read it as a flag.")


def _describe(value: object) -> str:
    match value:
        case bool():
            return f"`{value}`".lower()
        case list() | dict() if not value:
            return "an empty list" if isinstance(value, list) else "an empty mapping"
        case list():
            return "this list"
        case dict():
            return "this mapping"
        case str():
            return f"the text {value[:40]!r}"
    return f"the number {value}"
