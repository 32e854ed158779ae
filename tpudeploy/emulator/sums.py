"""Sums that a simulated node can reckon: a known share of them right, always the same ones. No model runs."""

from __future__ import annotations

import ast
import operator
import re
import zlib
from collections.abc import Callable, Mapping

_SUM = re.compile(r"What is ([0-9 +*()-]{1,80})\?")
# What is told as a story: its numbers in their order, and what becomes of them.
_STORIES: tuple[tuple[re.Pattern[str], Callable[..., int]], ...] = (
    (re.compile(r"has (\d{1,9}) boxes, gets (\d{1,9}) more, and sells (\d{1,9})\."), lambda a, b, c: a + b - c),
    (re.compile(r"(\d{1,9}) shelves hold (\d{1,9}) books each, and (\d{1,9}) books"), lambda a, b, c: a * b - c),
)
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def reckoned(prompt: str, share: float) -> str | None:
    """An answer as a model would write it, right of this `share` of sums; None where nothing is asked for.

    What is right with a smaller share is right with a larger one too.
    """
    right = _sum(prompt)
    if right is None:
        return None
    luck = zlib.crc32(prompt.encode()) / 2**32
    return f"Let me reckon.\nAnswer: {right if luck < share else right + 1}"


def _sum(prompt: str) -> int | None:
    found = _SUM.search(prompt)
    if found is not None:
        try:
            return _value(ast.parse(found[1].strip(), mode="eval").body)
        except (SyntaxError, ValueError):
            return None
    for story, does in _STORIES:
        numbers = story.search(prompt)
        if numbers is not None:
            return does(*map(int, numbers.groups()))
    return None


def _value(of: ast.expr) -> int:
    match of:
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left), _value(right))
        case _:
            raise ValueError("no sum")
