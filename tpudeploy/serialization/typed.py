"""Read JSON into frozen data by the annotations of its fields: the reverse of domain/serialization.py."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

T = TypeVar("T")
_DOCUMENT, _LINE = "document", "line"
_CONFIGURATIONS = {
    _DOCUMENT: ConfigDict(strict=True, extra="forbid"),
    _LINE: ConfigDict(extra="ignore", allow_inf_nan=False, coerce_numbers_to_str=True),
}


def read(kind: type[T], tree: Any) -> T:
    """Return the value of this class. Raise ValueError, with the place and the reason, if `tree` is no complete one."""
    key: Any = kind
    try:
        value: T = _adapter(key, _DOCUMENT).validate_json(json.dumps(tree))
    except ValidationError as cause:
        first = cause.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from cause
    return value


def read_lines(kind: type[T], text: str) -> tuple[T, ...]:
    """Return what every readable line says, oldest first.

    Any other line is left out, and is no error: a killed writer leaves an incomplete line, and a newer version may
    write one that this version does not know. Only one of many is missing then.
    """
    key: Any = kind
    values: list[Any] = []
    for line in text.split("\n"):
        with suppress(ValidationError):
            values.append(_adapter(key, _LINE).validate_json(line))
    return tuple(sorted((value for value in values if value is not None), key=lambda value: value.at))


@cache
def _adapter(kind: Any, how: str) -> TypeAdapter[Any]:
    # An adapter takes no configuration for a dataclass itself, as that could have one of its own.
    return TypeAdapter(kind | None, config=_CONFIGURATIONS[how])
