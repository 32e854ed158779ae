"""The text of `endpoints/NAME.json`, which clients read to find a deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tpudeploy.domain import errors


def dumps(body: Mapping[str, object]) -> str:
    return json.dumps(body, indent=2) + "\n"


def loads(text: bytes, *, source: str) -> Mapping[str, object]:
    """Return the endpoint. Raise `errors.StateUnreadable`, which names `source`, if it has no `url`."""
    hint = "Run `tpudeploy apply` to write it again."
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise errors.StateUnreadable(f"{source} cannot be read: {cause}.", hint=hint) from cause
    if not isinstance(body, dict) or not isinstance(body.get("url"), str):
        raise errors.StateUnreadable(f"{source} names no endpoint.", hint=hint)
    return body
