"""What a foreign result becomes, and how its numbers are read: finite or not at all, times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import isfinite
from typing import Any

from tpudeploy.domain.benchmark import Evidence, Figures, Spread
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.load import Point


@frozen
class Result:
    """One cell as somebody else measured it. `model` is the served name, "" where the file does not tell it.

    `figures` is None where it was left out, as more than the engine runs at once; `why` says so.
    """

    point: Point
    figures: Figures | None
    why: str = ""
    evidence: Evidence = Evidence()
    model: str = ""
    seconds: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)


def number(tree: Any, *path: str) -> float | None:
    """What stands at that path, or None: nothing does, or no finite number."""
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    is_number = isinstance(tree, int | float) and not isinstance(tree, bool)
    return float(tree) if is_number and isfinite(tree) else None


def needed(tree: Any, *path: str) -> float:
    """As `number`. Raise ValueError where there is none."""
    found = number(tree, *path)
    if found is None:
        raise ValueError(f"it has no `{'.'.join(path)}`")
    return found


def spread(values: Mapping[str, float | None], *, count: int | None, scale: float) -> Spread | None:
    """By the names of `Spread`'s fields, in units of `scale` seconds. None without a mean."""
    if values.get("mean") is None:
        return None
    scaled = {name: None if value is None else value * scale for name, value in values.items()}
    mean = scaled["mean"]
    assert mean is not None
    return Spread(
        count=count,
        mean=mean,
        deviation=scaled.get("deviation"),
        p50=scaled.get("p50"),
        p90=scaled.get("p90"),
        p95=scaled.get("p95"),
        p99=scaled.get("p99"),
        most=scaled.get("most"),
    )


def whole(mean: float | None) -> int | None:
    """Return a mean number of tokens or streams, rounded; None where it is unknown, or 0: then nothing was measured."""
    return None if mean is None else round(mean) or None


def times(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other
