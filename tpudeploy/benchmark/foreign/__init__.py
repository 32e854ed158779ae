"""Results of other people's clients, read: FORMATS is the table; a result is known by what stands in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpudeploy.benchmark.foreign import aiperf, grid, guidellm, vllm
from tpudeploy.benchmark.foreign.reading import Result
from tpudeploy.domain.benchmark import Driver
from tpudeploy.domain.frozen import frozen


@frozen
class Format:
    """`is_it` and `read` get the JSON tree; `read` raises ValueError, KeyError or TypeError for what is damaged."""

    driver: Driver
    name: str
    is_it: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any]], Sequence[Result]]


FORMATS = (
    Format(driver=Driver.VLLM, name="vllm bench serve", is_it=vllm.is_it, read=vllm.read),
    Format(driver=Driver.GUIDELLM, name="guidellm", is_it=guidellm.is_it, read=guidellm.read),
    Format(driver=Driver.AIPERF, name="aiperf", is_it=aiperf.is_it, read=aiperf.read),
)


def read(text: str) -> tuple[Driver, Sequence[Result]]:
    """Whose result a file is, and its cells. Raise ValueError, with the reason, for what nobody here can read."""
    if not text.lstrip().startswith(("{", "[")):
        return Driver.GRID, grid.read(text)
    try:
        tree = json.loads(text)
        known = next((each for each in FORMATS if isinstance(tree, dict) and each.is_it(tree)), None)
        if known is None:
            raise ValueError(f"it is no result of {', '.join(each.name for each in FORMATS)}")
        return known.driver, known.read(tree)
    except (KeyError, TypeError, AttributeError, RecursionError) as cause:
        raise ValueError(f"{type(cause).__name__}: {cause}") from cause
