"""What would fit, where something does not: the same deployment with one setting changed until it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.frozen import frozen
from tpudeploy.sizing.budget import budget
from tpudeploy.sizing.programs import program_room

UTILIZATION_KEY, LENGTH_KEY, TYPE_KEY = "hbm_utilization", "max_model_len", "tpu.type"
SPLIT_KEYS = ("tensor_parallel_size", "data_parallel_size")
_STEP = 16  # the smallest block: lengths between two blocks cost the same
_WORTH_A_RESTART = 1.01  # a gain below one in a hundred is noise
_LONG = 8_192  # just beyond it the default block shrinks from 256 to 16: the one place where more may cost less


def longest(of: HbmBudget) -> int:
    """The largest `max_model_len` of which one request fits, or 0."""
    most = min(of.engine.max_model_len, of.model.max_position)
    return _longest(of, _LONG, most) or _longest(of, 0, min(_LONG, most))


def fitted(of: HbmBudget | Unsized) -> HbmBudget | Unsized:
    """Return the budget with the length that `max_model_len: auto` ends in: the model's own, or the most that fits.

    vLLM decides the block size before it shortens the length, for the model's own.
    """
    if isinstance(of, Unsized) or of.holds_a_request:
        return of
    fixed = otherwise(of, block_size=of.block_size)
    length = 0 if fixed is None else longest(fixed)
    shortened = otherwise(of, block_size=of.block_size, max_model_len=length) if length else None
    return shortened or of


@frozen
class Remedy:
    """A change with which the server starts. `settings` are keys of a profile with their values.

    `budget` is what it then holds. `most`, where utilization is raised, is what the largest safe value holds.
    """

    settings: Mapping[str, object]
    budget: HbmBudget
    most: HbmBudget | None = None


def remedies(of: HbmBudget, *, allow_copies: bool = True) -> tuple[Remedy, ...]:
    """Return what would let this start, cheapest first: another utilization, a shorter length, another slice.

    Each holds one request of full length and leaves the room for programs with which boots are known to succeed. A
    length is shortened at this utilization, or where that is not enough at the largest safe one. Without
    `allow_copies` chips are never split into copies of the model.
    """
    by_utilization = _by_utilization(of)
    by_length = _by_length(of) or (None if by_utilization else _by_both(of))
    ways = (by_utilization, by_length, _by_slice(of, allow_copies=allow_copies))
    return tuple(way for way in ways if way is not None)


def more_cache(of: HbmBudget) -> tuple[Remedy, ...]:
    """Return what would hold more tokens than this, cheapest first; each is known to start, none is a guess.

    A pool that another setting leaves as it is gains nothing from it: then that setting is not among them.
    """
    most, chips = largest_utilization(of), of.engine.tensor_parallel * of.engine.data_parallel
    settings: list[tuple[dict[str, object], HbmBudget | None]] = [
        ({"args.num_gpu_blocks_override": "null"}, otherwise(of, blocks_override=None)),
        ({UTILIZATION_KEY: most}, otherwise(of, utilization=most) if most > of.engine.utilization else None),
        ({"kv_cache_dtype": "fp8"}, otherwise(of, kv_dtype="fp8")),
        ({LENGTH_KEY: of.engine.max_model_len // 2}, otherwise(of, max_model_len=of.engine.max_model_len // 2)),
    ]
    copies = best_copies(of)
    settings.append(({} if copies is None else _split_settings(copies), copies))
    kinds = [kind for kind in catalog.generation(of.accelerator.generation).types if kind.hosts == 1]
    larger = next((kind for kind in kinds if kind.chips > chips), None)
    if larger is not None:
        whole = budget(of.model, larger, replace(of.engine, tensor_parallel=larger.chips, data_parallel=1))
        if isinstance(whole, HbmBudget):
            settings.append(({TYPE_KEY: larger.name, "tensor_parallel_size": larger.chips}, whole))
    least = of.kv_cache_tokens * _WORTH_A_RESTART
    return tuple(
        Remedy(settings=changes, budget=other)
        for changes, other in settings
        if other is not None and other.kv_cache_tokens >= least and starts(other)
    )


def _split_settings(of: HbmBudget) -> dict[str, object]:
    sizes = (of.engine.tensor_parallel, of.engine.data_parallel)
    return dict(zip(SPLIT_KEYS, sizes, strict=True))


def starts(of: HbmBudget) -> bool:
    """Whether it holds a request, and leaves programs the room with which boots are known to succeed."""
    left = of.free_bytes_per_chip + of.program_bytes_per_chip
    return of.holds_a_request and left >= program_room(of.model, of.engine).proven


def largest_utilization(of: HbmBudget) -> float:
    """Return the largest utilization of two decimals with which boots are known to succeed."""
    return program_room(of.model, of.engine).utilization(of.hbm_bytes_per_chip)


def best_copies(of: HbmBudget) -> HbmBudget | None:
    """The split of the same chips into copies that holds the most tokens, if it beats this one."""
    fitting = [other for other in _splits(of) if other.holds_a_request and other.kv_cache_tokens > of.kv_cache_tokens]
    return max(fitting, key=lambda other: other.kv_cache_tokens, default=None)


def otherwise(of: HbmBudget, **changes: Any) -> HbmBudget | None:
    """The same with other settings of the engine, or None where that cannot be."""
    found = budget(of.model, of.accelerator, replace(of.engine, **changes))
    return found if isinstance(found, HbmBudget) else None


def _longest(of: HbmBudget, above: int, most: int) -> int:
    """The largest beyond `above` and up to `most`, by bisection, or 0."""
    fits, fails = above // _STEP, most // _STEP + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if _fits(of, max_model_len=middle * _STEP):
            fits = middle
        else:
            fails = middle
    return fits * _STEP if fits > above // _STEP else 0


def _fits(of: HbmBudget, **changes: Any) -> bool:
    other = otherwise(of, **changes)
    return other is not None and other.holds_a_request


def lightest(of: HbmBudget) -> HbmBudget:
    """Return the slice of one host and the split of it in which the weights take the smallest share of a chip."""
    kinds = [kind for kind in catalog.accelerator_types() if kind.hosts == 1]
    splits = [split for kind in kinds for split in _splits_of(of, kind)]
    return min((of, *splits), key=lambda split: split.weights_bytes_per_chip / split.hbm_bytes_per_chip)


def _by_utilization(of: HbmBudget) -> Remedy | None:
    """Return the nearest utilization of two decimals with which it starts."""
    most = round(100 * largest_utilization(of))
    best = otherwise(of, utilization=most / 100) if most > 0 else None
    if best is None or not starts(best):
        return None
    if of.engine.utilization > most / 100:  # too large: the largest safe one is the nearest
        return Remedy(settings={UTILIZATION_KEY: most / 100}, budget=best)
    fails, fits = 0, most
    while fits - fails > 1:
        middle = (fits + fails) // 2
        if _fits(of, utilization=middle / 100):
            fits = middle
        else:
            fails = middle
    least = otherwise(of, utilization=fits / 100)
    return None if least is None else Remedy(settings={UTILIZATION_KEY: fits / 100}, budget=least, most=best)


def _by_length(of: HbmBudget) -> Remedy | None:
    length = longest(of)
    shorter = otherwise(of, max_model_len=length) if 0 < length < of.engine.max_model_len else None
    return Remedy(settings={LENGTH_KEY: length}, budget=shorter) if shorter is not None and starts(shorter) else None


def _by_both(of: HbmBudget) -> Remedy | None:
    most = largest_utilization(of)
    way = _by_length(raised) if most > 0 and (raised := otherwise(of, utilization=most)) is not None else None
    return None if way is None else replace(way, settings={UTILIZATION_KEY: most, **way.settings})


def _by_slice(of: HbmBudget, *, allow_copies: bool) -> Remedy | None:
    """Return the fewest chips of one host that do, of this generation or else of another.

    Utilization is changed too where it must be, the length only where no slice holds the whole.
    """
    mine = [kind for kind in catalog.generation(of.accelerator.generation).types if kind.chips >= of.accelerator.chips]
    others = [kind for kind in catalog.accelerator_types() if kind.generation != of.accelerator.generation]
    for kinds in (mine, others):
        for shortens in (False, True):
            for kind in kinds:
                way = _on(of, kind, allow_copies=allow_copies, shortens=shortens) if kind.hosts == 1 else None
                if way is not None:
                    return way
    return None


def _on(of: HbmBudget, kind: AcceleratorType, *, allow_copies: bool, shortens: bool) -> Remedy | None:
    """Return what does on this slice: one copy over all its chips, else the split that holds the most tokens."""
    ways = [way for split in _splits_of(of, kind) if (way := _with_changes(split, shortens=shortens)) is not None]
    whole = [way for way in ways if way.budget.engine.data_parallel == 1]
    candidates = whole or (ways if allow_copies else [])
    best = max(candidates, key=lambda way: way.budget.kv_cache_tokens, default=None)
    if best is None:
        return None
    slice_type = {} if kind.name == of.accelerator.name else {TYPE_KEY: kind.name}
    return replace(best, settings={**slice_type, **_split_settings(best.budget), **best.settings}, most=None)


def _with_changes(split: HbmBudget, *, shortens: bool) -> Remedy | None:
    if starts(split):
        return Remedy(settings={}, budget=split)
    return _by_utilization(split) or ((_by_length(split) or _by_both(split)) if shortens else None)


def _splits_of(of: HbmBudget, kind: AcceleratorType) -> Iterator[HbmBudget]:
    """Yield every split of this slice's chips into copies, but for the one that is there."""
    for tensor in range(1, kind.chips + 1):
        if kind.chips % tensor == 0 and (kind.name != of.accelerator.name or tensor != of.engine.tensor_parallel):
            engine = replace(of.engine, tensor_parallel=tensor, data_parallel=kind.chips // tensor)
            split = budget(of.model, kind, engine)
            if isinstance(split, HbmBudget):
                yield split


def _splits(of: HbmBudget) -> Iterator[HbmBudget]:
    chips = of.engine.tensor_parallel * of.engine.data_parallel
    for tensor in range(1, chips + 1):
        if chips % tensor == 0:
            other = otherwise(of, tensor_parallel=tensor, data_parallel=chips // tensor)
            if other is not None:
                yield other
