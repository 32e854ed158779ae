"""Look up TPU types, zones and prices in the tables of this folder, and suggest corrections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache

from tpudeploy.catalog.generations import FORMER_NAMES, GENERATIONS, UNSUPPORTED_GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType, Generation

__all__ = ["UNSUPPORTED_GENERATIONS"]

# Other names of a generation, among people and in Google's other services.
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "v6e": ("v6", "v6lite", "v6litepod", "trillium", "ct6e"),
    "v5e": ("v5", "v5lite", "v5litepod", "ct5lp"),
    "v4": ("ct4p",),
    "v5p": ("ct5p",),
    "tpu7x": ("7x", "v7x", "v7", "ironwood"),
}
# Of other tools too: tpu-v6e-4, TPU-V6E-4, v6e-4:1 (SkyPilot's number of slices), tpu_v5e:8.
_TYPE_NAME = re.compile(
    r"^(?:tpu[-_ ]?)?(?P<generation>v\d+[a-z]*|ct\d[a-z]+|trillium|ironwood|7x)"
    r"(?:\D+(?P<size>\d{1,5})(?P<unit>[\w-]*)(?::1)?)?$"
)


@cache
def accelerator_types() -> tuple[AcceleratorType, ...]:
    return tuple(t for generation in GENERATIONS for t in generation.types)


@lru_cache(maxsize=256)
def accelerator_type(name: str) -> AcceleratorType | None:
    """Return the type of this name: the TPU API's, the machine type of a single host, or generation and chips."""
    return next((t for t in accelerator_types() if name in names_of(t)), None)


def current_name(name: str) -> str:
    """Return the name of a type in plans and states for one that an earlier version wrote."""
    return FORMER_NAMES.get(name, name)


def names_of(slice_type: AcceleratorType) -> tuple[str, ...]:
    """Return every name of a type that a profile may use, the one of plans and states first.

    A generation whose numbers count cores, in Google's names or those of other tools, has no names that count chips:
    `v5p-8` would be two types. A topology means one type everywhere.
    """
    is_ambiguous = any(counts_cores(t) or t.devices_per_chip > 1 for t in generation(slice_type.generation).types)
    plain = () if is_ambiguous else (f"{slice_type.generation}-{slice_type.chips}",)
    # Slices of several hosts are made of the machines of a single-host type.
    machine = (slice_type.machine_type,) if slice_type.hosts == 1 else ()
    topology = f"{slice_type.generation}-{slice_type.topology}"
    return tuple(dict.fromkeys((slice_type.name, *plain, *machine, *slice_type.also_called, topology)))


def counts_of(name: str) -> tuple[int, int] | None:
    """Return the chips that a name means if its number counts TensorCores, and if it counts chips.

    None for a name that is read in one way: in those of TPU7x alone, Google, xpk and tpu-inference's CI count
    TensorCores, of which a chip has two, and node pools and recipes count chips.
    """
    parts = _TYPE_NAME.search(name.strip().lower())
    if parts is None or parts["size"] is None or parts["unit"] == "t":  # a machine: tpu7x-standard-4t
        return None
    types = types_of(parts["generation"])
    if not types or types[0].devices_per_chip == 1:
        return None
    size, cores = int(parts["size"]), types[0].devices_per_chip
    return None if size % cores else (size // cores, size)


def counts_cores(slice_type: AcceleratorType) -> bool:
    """Return whether the number in a name of the TPU API is that of TensorCores, and not of chips."""
    return slice_type.name == f"{slice_type.generation}-{2 * slice_type.chips}"


def zones_of_region(region: str) -> tuple[str, ...]:
    """Return the zones of a region that have a TPU of any generation, by name; none for what is no such region."""
    zones = {zone for generation in GENERATIONS for zone in generation.zones}
    return tuple(sorted(zone for zone in zones if zone.rpartition("-")[0] == region))


def type_of_topology(generation_name: str, topology: str) -> AcceleratorType | None:
    """Return the type of this generation, by any of its names, and topology; None for one that it does not have."""
    name = _generation_of(generation_name.strip().lower())
    return next((t for t in accelerator_types() if (t.generation, t.topology) == (name, topology)), None)


def types_of(generation_name: str) -> tuple[AcceleratorType, ...]:
    """Return the types of a generation, by any of its names; none for an unknown generation."""
    name = _generation_of(generation_name.strip().lower())
    return tuple(t for t in accelerator_types() if t.generation == name)


def unsupported_generation(type_name: str) -> str | None:
    """Return the generation in the name of a type, if Google has it and tpudeploy does not support it, else None."""
    name = generation_in(type_name)
    return name if name in UNSUPPORTED_GENERATIONS else None


def generation_in(type_name: str) -> str | None:
    """Return the generation in the name of a type, by any of its names, or None for an unknown one."""
    parts = _TYPE_NAME.search(type_name.strip().lower())
    return None if parts is None else _generation_of(parts["generation"])


def _generation_of(word: str) -> str | None:
    """Return the generation of this name or alias, or None for an unknown one."""
    names = (*(g.name for g in GENERATIONS), *UNSUPPORTED_GENERATIONS)
    return next((name for name in names if word == name or word in _ALSO_CALLED.get(name, ())), None)


@lru_cache(maxsize=256)
def generation(name: str) -> Generation:
    """Raise KeyError for a name that no row has."""
    return {g.name: g for g in GENERATIONS}[name]


def quota_units_per_chip(generation_name: str) -> int:
    """Return how many units of the TPU API's quota a chip takes: that of some generations counts cores."""
    tpu_api = generation(generation_name).tpu_api
    return 1 if tpu_api is None else tpu_api.quota_units_per_chip


def usd_per_chip_hour(generation_name: str, region: str, provisioning: str) -> float | None:
    """Return the list price, or None if unknown. Live prices come from the billing catalogue."""
    return generation(generation_name).prices.get(region, {}).get(provisioning)


def closest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant, or None."""
    return next(filter(None, get_close_matches(word, list(choices), n=5, cutoff=0.6)), None)


def guess(word: str, choices: Iterable[str]) -> str:
    """Return a question about the choice that was probably meant, or ""."""
    near = closest(word, choices)
    return f"Did you mean `{near}`?" if near else ""


def choice_hint(word: str, choices: Iterable[str], *, otherwise: str = "") -> str:
    """Return the hint about a word that is not one of the choices: the nearest one, or all; `otherwise` without any."""
    names = list(choices)
    near = closest(word, names)
    if near is not None:
        return f"Did you mean `{near}`?"
    return f"There are: {', '.join(names)}." if names else otherwise


def closest_type(name: str, *, is_accepted: Callable[[AcceleratorType], bool] = lambda _: True) -> str | None:
    """Return the accelerator type that was probably meant, or None.

    It has the generation in `name`, by any of its names, and the nearest size; of two equally near ones, the larger.
    `is_accepted` is the check that refused `name`: a suggestion that it would refuse too is worse than no suggestion.
    There is no suggestion for a generation that the catalogue does not have, because others differ in memory.
    """
    parts = _TYPE_NAME.search(name.strip().lower())
    if parts is None:
        return None
    sizes = [t for t in types_of(parts["generation"]) if is_accepted(t)]
    is_machine = parts["generation"].startswith("ct")
    units = 1 if is_machine or not any(map(counts_cores, sizes)) else 2
    size = max(int(parts["size"] or 1), 1)
    nearest = min(
        sizes, key=lambda t: (max(t.chips * units, size) / min(t.chips * units, size), -t.chips), default=None
    )
    return None if nearest is None else nearest.name
