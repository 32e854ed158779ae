"""The cells of a sweep: every concurrency with every context and every output, in the order to run them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpudeploy.domain.load import Point

_RANGE = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")


def grid(concurrencies: Iterable[int], contexts: Iterable[int], outputs: Iterable[int]) -> tuple[Point, ...]:
    """One shape of request after the other, each from one stream up: what breaks first breaks last."""
    shapes = [(context, output) for output in outputs for context in contexts]
    streams = tuple(concurrencies)
    return tuple(
        Point(concurrency=concurrency, context_tokens=context, output_tokens=output)
        for context, output in shapes
        for concurrency in streams
    )


def numbers(text: str) -> tuple[int, ...]:
    """`1,2,8`, or `1..64` for 1, 2, 4 and so on to 64; in order, each once. Raise ValueError for anything else."""
    found: set[int] = set()
    for part in text.replace("…", "..").split(","):
        written = part.strip()
        if span := _RANGE.fullmatch(written):
            found.update(_doubling(int(span[1]), int(span[2])))
        elif _NUMBER.fullmatch(written):
            found.add(int(written))
        else:
            raise ValueError(f"`{written}` is no number")
    if min(found) < 1:
        raise ValueError("0 is no count")
    return tuple(sorted(found))


def _doubling(first: int, last: int) -> Iterable[int]:
    if not 1 <= first <= last:
        raise ValueError(f"`{first}..{last}` does not go up from 1")
    while first <= last:
        yield first
        first *= 2
