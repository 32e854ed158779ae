"""Parse JSON that another program sent. Everything else, whatever it is, raises one ValueError."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

MOST_DEPTH = 64  # no API that tpudeploy reads nests deeper than a dozen levels
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str | bytes) -> Any:
    """Return the tree of a JSON text in UTF-8.

    Raise ValueError for anything else, as RFC 8259 has it: NaN, infinities and halves of surrogate pairs too, which
    Python would accept and cannot write again. A number that no float can hold (1e400) and a tree of more than
    `MOST_DEPTH` levels are refused for the same reason.
    """
    content = text.decode("utf-8") if isinstance(text, bytes) else text
    try:
        tree = json.loads(content, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as cause:
        raise ValueError("the JSON is nested too deeply") from cause
    if _is_deep(tree):
        raise ValueError("the JSON is nested too deeply")
    if _SURROGATE.search(content):
        json.dumps(tree, ensure_ascii=False).encode()  # raises UnicodeEncodeError, a ValueError, for half a pair
    return tree


def _is_deep(tree: Any) -> bool:
    level = [tree]
    for _ in range(MOST_DEPTH):
        level = [child for node in level if isinstance(node, dict | list) for child in _children(node)]
        if not level:
            return False
    return True


def _children(node: dict[str, Any] | list[Any]) -> Any:
    return node.values() if isinstance(node, dict) else node


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number
