"""Spell a JSON-like value as one word of a command line, in the type that vLLM reads it as."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum


class ValueType(StrEnum):
    """The type that vLLM reads a word as."""

    BOOL = "bool"  # no word: the flag itself is the value
    TEXT = "text"
    KEYWORD = "keyword"  # a choice in any case, with - for _
    INT = "int"
    SIZE = "size"  # 16000, 16k, 16K
    SIZE_OR_AUTO = "size-or-auto"
    FLOAT = "float"
    OBJECT = "object"  # JSON
    ARRAY = "array"  # JSON
    TEXT_OR_OBJECT = "text-or-object"


def spell(value_type: ValueType, value: object) -> str:
    """Return the word. Raise TypeError or ValueError for a value that no word of this type expresses."""
    if isinstance(value, bool):
        raise TypeError("a flag expresses `true` and `false` without a word")
    word = _SPELLINGS[value_type](value)
    word.encode()  # a lone surrogate has no bytes
    if "\0" in word:
        raise ValueError("no argument of a process can hold a NUL")
    return word


def _text(value: object) -> str:
    if isinstance(value, str | int):
        return str(value)
    raise TypeError("a float as text would lose digits: 1.10 would become 1.1")


def _int(value: object) -> str:
    word = _text(value)
    int(word)
    return word


def _size(value: object) -> str:
    return value if isinstance(value, str) and _SIZE.fullmatch(value.strip()) else _int(value)


def _size_or_auto(value: object) -> str:
    return value if isinstance(value, str) and value.strip().lower() == "auto" else _size(value)


def _float(value: object) -> str:
    word = value if isinstance(value, str) else json.dumps(value)
    if not math.isfinite(float(word)):
        raise ValueError("not finite")
    return word


def _json(value: object, shape: type) -> str:
    """Return text unchanged, because it is JSON that a person wrote; return any other value as JSON."""
    parsed = json.loads(value) if isinstance(value, str) else value
    word = json.dumps(parsed, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not isinstance(parsed, shape):
        raise TypeError("JSON of another shape")
    return value if isinstance(value, str) else word


def _object(value: object) -> str:
    return _json(value, dict)


def _array(value: object) -> str:
    return _json(value, list)


def _text_or_object(value: object) -> str:
    is_object = isinstance(value, dict) or (isinstance(value, str) and _BRACED.fullmatch(value))
    return _object(value) if is_object else _text(value)


def count_of(word: str) -> int | str:
    """Return `16k` as 16,000, `16K` as 16,384 and `25.6k` as 25,600, as vLLM does; other text unchanged."""
    if not _SIZE.fullmatch(word.strip()):
        return word

    number, unit = word.strip()[:-1], word.strip()[-1]
    return int(Decimal(number) * (1024 if unit.isupper() else 1000) ** (" kmgt".index(unit.lower())))


# K is 1024; k is 1000 and may have decimals.
_SIZE = re.compile(r"[0-9]{1,18}[kmgtKMGT]|[0-9]{1,18}\.[0-9]{1,18}[kmgt]")
_BRACED = re.compile(r"\s*\{.*\}\s*", re.DOTALL)

_SPELLINGS: Mapping[ValueType, Callable[[object], str]] = {
    ValueType.TEXT: _text,
    ValueType.KEYWORD: _text,
    ValueType.INT: _int,
    ValueType.SIZE: _size,
    ValueType.SIZE_OR_AUTO: _size_or_auto,
    ValueType.FLOAT: _float,
    ValueType.OBJECT: _object,
    ValueType.ARRAY: _array,
    ValueType.TEXT_OR_OBJECT: _text_or_object,
}
