"""What exists: look-ups over the tables in this folder, with "did you mean"."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType, Generation


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
    """List price, or None where none is known. A hint: live prices come from the billing catalogue."""
    return generation(generation_name).prices.get(region, {}).get(provisioning)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, or None."""
    from difflib import get_close_matches  # only where a word is wrong

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=0.6)), None)
