"""Write frozen data as JSON with its format and a hash of its content, and refuse a file that was changed since."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

from tpudeploy.domain.serialization import to_json
from tpudeploy.serialization.typed import read

T = TypeVar("T")


def dumps(value: object, form: str) -> str:
    content = to_json(value)
    return json.dumps({"format": form, "hash": _hash(content), **content}, indent=1, ensure_ascii=False) + "\n"


def loads(kind: type[T], text: str, form: str) -> T:
    """Read what `dumps` wrote in this format. Raise ValueError, with the reason, for anything else."""
    try:
        content = json.loads(text)
        file_form, file_hash = content.pop("format"), content.pop("hash")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as cause:
        raise ValueError(f"{type(cause).__name__}: {cause}") from cause
    if file_form != form:
        raise ValueError(f"its format is `{file_form}`, and this tpudeploy reads `{form}`")
    if file_hash != _hash(content):
        raise ValueError("it was changed after it was written")
    return read(kind, content)


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
