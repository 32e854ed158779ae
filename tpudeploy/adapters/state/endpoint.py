"""`endpoints/NAME.json`: what clients read to find a deployment, as text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tpudeploy.domain import errors


def dumps(body: Mapping[str, object]) -> str:
    return json.dumps(body, indent=2) + "\n"


def loads(text: bytes, *, source: str) -> Mapping[str, object]:
    """Raise `errors.StateUnreadable` for what names no `url`; `source` names the file in the message."""
    hint = "`tpudeploy apply` writes it anew."
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise errors.StateUnreadable(f"{source} cannot be read: {cause}.", hint=hint) from cause
    if not isinstance(body, dict) or not isinstance(body.get("url"), str):
        raise errors.StateUnreadable(f"{source} names no endpoint.", hint=hint)
    return body
