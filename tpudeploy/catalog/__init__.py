"""Look up TPU types, zones and prices in the tables of this folder, and suggest corrections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType, Generation

# What people and Google's other services call a generation, beside the name in its row.
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "v6e": ("v6", "v6lite", "v6litepod", "trillium", "ct6e"),
    "v5e": ("v5", "v5lite", "v5litepod", "ct5lp"),
}
_TYPE_NAME = re.compile(r"^(?:tpu[-_ ]?)?(?P<generation>v\d+[a-z]*|ct\d[a-z]+|trillium)(?:\D+(?P<chips>\d{1,5})\w*)?$")


def accelerator_types() -> tuple[AcceleratorType, ...]:
    return tuple(t for generation in GENERATIONS for t in generation.types)


@lru_cache(maxsize=256)
def accelerator_type(name: str) -> AcceleratorType | None:
    return next((t for t in accelerator_types() if t.name == name), None)


@lru_cache(maxsize=256)
def generation(name: str) -> Generation:
    """Raise KeyError for a name that no row has."""
    return {g.name: g for g in GENERATIONS}[name]


def usd_per_chip_hour(generation_name: str, region: str, provisioning: str) -> float | None:
    """Return the list price, or None if unknown. Live prices come from the billing catalogue."""
    return generation(generation_name).prices.get(region, {}).get(provisioning)


def closest(word: str, choices: Iterable[str], *, is_accepted: Callable[[str], bool] = bool) -> str | None:
    """Return the choice that was probably meant, or None.

    `is_accepted` is the check that refused `word`: a suggestion that it would refuse too is worse than no suggestion.
    """
    from difflib import get_close_matches  # only where a word is wrong

    return next(filter(is_accepted, get_close_matches(word, list(choices), n=5, cutoff=0.6)), None)


def closest_type(name: str, *, is_accepted: Callable[[AcceleratorType], bool]) -> str | None:
    """Return the accelerator type that was probably meant, or None.

    It has the generation in `name`, by any of its names, and the nearest size; of two equally near ones, the larger.
    There is no suggestion for a generation that the catalogue does not have, because others differ in memory.
    """
    parts = _TYPE_NAME.search(name.strip().lower())
    if parts is None:
        return None
    names = {alias: g.name for g in GENERATIONS for alias in (g.name, *_ALSO_CALLED.get(g.name, ()))}
    generation_name = names.get(parts["generation"])
    sizes = [t for t in accelerator_types() if t.generation == generation_name and is_accepted(t)]
    chips = max(int(parts["chips"] or 1), 1)
    nearest = min(sizes, key=lambda t: (max(t.chips, chips) / min(t.chips, chips), -t.chips), default=None)
    return None if nearest is None else nearest.name
