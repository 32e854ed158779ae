"""Frozen data ↔ JSON with its format and a hash of its content: whether a file is still what was written."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

from tpudeploy.domain.serialization import to_json
from tpudeploy.serialization.typed import read

T = TypeVar("T")


def dumps(of: object, form: str) -> str:
    content = to_json(of)
    return json.dumps({"format": form, "hash": _hash(content), **content}, indent=1, ensure_ascii=False) + "\n"


def loads(of: type[T], text: str, form: str) -> T:
    """Raise ValueError, which says why, for anything but what `dumps` wrote of this format."""
    try:
        content = json.loads(text)
        written, stamp = content.pop("format"), content.pop("hash")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as cause:
        raise _as_value_error(cause) from cause
    if written != form:
        raise ValueError(f"its format is `{written}`, and this tpudeploy reads `{form}`")
    if stamp != _hash(content):
        raise ValueError("it was changed after it was written")
    try:
        return read(of, content)
    except (ValueError, KeyError, TypeError) as cause:
        raise _as_value_error(cause) from cause


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _as_value_error(cause: Exception) -> ValueError:
    return ValueError(f"{type(cause).__name__}: {cause}")
