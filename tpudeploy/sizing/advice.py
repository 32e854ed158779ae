"""Ways to make a deployment fit: the same deployment with one setting changed until it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.sizing.search import (
    KV_TYPE_KEY,
    LENGTH_KEY,
    SMALL_KV_TYPE,
    SPLIT_KEYS,
    STAGES_KEY,
    TYPE_KEY,
    UTILIZATION_KEY,
    SizingRemedy,
    budget_with,
    host_stages,
    largest_utilization,
    small_cache,
    splits,
    starts,
)

_STEP = 16  # the smallest block: lengths between two blocks cost the same
_WORTH_A_RESTART = 1.01  # a gain below one in a hundred is noise
_LONG = 8_192  # just beyond it the default block shrinks from 256 to 16: the one place where more may cost less


def longest(budget: HbmBudget) -> int:
    """Return the largest `max_model_len` of which one request fits, or 0."""
    most = min(budget.engine.max_model_len, budget.model.max_position)
    return _longest(budget, _LONG, most) or _longest(budget, 0, min(_LONG, most))


def _longest(budget: HbmBudget, above: int, most: int) -> int:
    """Return the largest length beyond `above` and up to `most`, or 0."""
    least = above // _STEP
    fits, _ = _bisect(lambda blocks: _fits(budget, max_model_len=blocks * _STEP), least, most // _STEP + 1)
    return fits * _STEP if fits > least else 0


def _bisect(is_below: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """Return the two neighbours between `low` and `high` at which `is_below` becomes false."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high


def _fits(budget: HbmBudget, **changes: Any) -> bool:
    other = budget_with(budget, **changes)
    return other is not None and other.holds_a_request


def fit_length(budget: HbmBudget | Unsized) -> HbmBudget | Unsized:
    """Return the budget with the length that `max_model_len: auto` ends in: the model's own, or the most that fits.

    vLLM decides the block size before it shortens the length, for the model's own.
    """
    if isinstance(budget, Unsized) or budget.holds_a_request:
        return budget
    fixed = budget_with(budget, block_size=budget.block_size)
    length = 0 if fixed is None else longest(fixed)
    shortened = budget_with(budget, block_size=budget.block_size, max_model_len=length) if length else None
    return shortened or budget


def best_copies(budget: HbmBudget) -> HbmBudget | None:
    """Return the split of the same devices into copies that holds the most tokens, if it beats this one."""
    if budget.accelerator.hosts > 1:
        return None  # one copy spans the hosts: copies are replicas, each on a slice of its own
    devices = budget.engine.tensor_parallel * budget.engine.data_parallel
    copies = [split for split in splits(budget, budget.accelerator, devices) if split.holds_a_request]
    best = max(copies, key=lambda split: split.kv_cache_tokens, default=budget)
    return best if best.kv_cache_tokens > budget.kv_cache_tokens else None


def best_stages(budget: HbmBudget) -> HbmBudget | None:
    """Return the split of several hosts into pipeline stages, one for each host, if it holds more tokens than this."""
    stages = host_stages(budget, budget.accelerator)
    return stages if stages is not None and stages.kv_cache_tokens > budget.kv_cache_tokens else None


def lightest(budget: HbmBudget) -> HbmBudget:
    """Return the slice and the split of it in which the weights take the smallest share of a chip.

    Several hosts are split into pipeline stages, where the model can be.
    """
    kinds = catalog.accelerator_types()
    ways = [split for kind in kinds if kind.hosts == 1 for split in splits(budget, kind, kind.devices)]
    stages = [host_stages(budget, kind) for kind in kinds if _is_of_hosts(kind)]
    ways += [split for split in stages if split is not None]
    return min((budget, *ways), key=lambda split: split.weights_bytes_per_chip / split.hbm_bytes_per_chip)


def _split_settings(budget: HbmBudget) -> dict[str, object]:
    return dict(zip(SPLIT_KEYS, (budget.engine.tensor_parallel, budget.engine.data_parallel), strict=True))


def more_cache(budget: HbmBudget) -> tuple[SizingRemedy, ...]:
    """Return what would hold more tokens than this, cheapest first; each is known to start, none is a guess.

    A pool that another setting leaves as it is gains nothing from it: then that setting is not among them.
    """
    engine, most = budget.engine, largest_utilization(budget)
    half, copies = engine.max_model_len // 2, best_copies(budget)
    options: list[tuple[dict[str, object], HbmBudget | None]] = [
        ({"args.num_gpu_blocks_override": "null"}, budget_with(budget, blocks_override=None)),
        ({UTILIZATION_KEY: most}, budget_with(budget, utilization=most) if most > engine.utilization else None),
        ({KV_TYPE_KEY: SMALL_KV_TYPE}, small_cache(budget)),
        ({LENGTH_KEY: half}, budget_with(budget, max_model_len=half)),
        ({} if copies is None else _split_settings(copies), copies),
    ]
    devices = engine.tensor_parallel * engine.data_parallel
    kinds = catalog.generation(budget.accelerator.generation).types
    larger = next((kind for kind in kinds if kind.hosts == 1 and kind.devices > devices), None)
    if larger is not None:
        # A slice of several hosts is larger than any of one host, so there are no stages to undo here. Copies of a
        # model whose KV heads are fewer than the chips hold more than one copy over all of them.
        ways = [split for split in splits(budget, larger, larger.devices) if split.holds_a_request]
        best = max(ways, key=lambda split: (split.kv_cache_tokens, split.engine.tensor_parallel), default=None)
        if best is not None:
            options.append(({TYPE_KEY: larger.name, **_split_settings(best)}, best))
    least = budget.kv_cache_tokens * _WORTH_A_RESTART
    return tuple(
        SizingRemedy(settings=settings, budget=other)
        for settings, other in options
        if other is not None and other.kv_cache_tokens >= least and starts(other)
    )


def remedies(budget: HbmBudget, *, allow_copies: bool = True) -> tuple[SizingRemedy, ...]:
    """Return what would let this start, mildest first: utilization, a KV cache in fp8, a shorter length, another slice.

    Each holds one request of full length and leaves the room for programs with which boots are known to succeed. A
    length is shortened at this utilization, or where that is not enough at the largest safe one. Without
    `allow_copies` chips are never split into copies of the model.
    """
    by_utilization = _by_utilization(budget)
    by_length = _by_length(budget) or (None if by_utilization else _by_both(budget))
    by_kv_type = _by_kv_type(budget, with_utilization=by_utilization is None)
    ways = (by_utilization, by_kv_type, by_length, _by_slice(budget, allow_copies=allow_copies))
    return tuple(way for way in ways if way is not None)


def _by_utilization(budget: HbmBudget) -> SizingRemedy | None:
    """Return the nearest utilization of two decimals with which it starts."""
    most = round(100 * largest_utilization(budget))
    best = budget_with(budget, utilization=most / 100) if most > 0 else None
    if best is None or not starts(best):
        return None
    if budget.engine.utilization > most / 100:  # too large: the largest safe one is the nearest
        return SizingRemedy(settings={UTILIZATION_KEY: most / 100}, budget=best)
    _, least = _bisect(lambda percent: not _fits(budget, utilization=percent / 100), 0, most)
    fitting = budget_with(budget, utilization=least / 100)
    return None if fitting is None else SizingRemedy(settings={UTILIZATION_KEY: least / 100}, budget=fitting, most=best)


def _by_kv_type(budget: HbmBudget, *, with_utilization: bool) -> SizingRemedy | None:
    """Return a KV cache in fp8, at the nearest utilization with which it starts if another one may be set."""
    small = small_cache(budget)
    if small is None:
        return None
    settings = {KV_TYPE_KEY: SMALL_KV_TYPE}
    if starts(small):
        return SizingRemedy(settings=settings, budget=small)
    way = _by_utilization(small) if with_utilization else None
    return None if way is None else replace(way, settings={**settings, **way.settings})


def _by_length(budget: HbmBudget) -> SizingRemedy | None:
    length = longest(budget)
    shorter = budget_with(budget, max_model_len=length) if 0 < length < budget.engine.max_model_len else None
    return (
        SizingRemedy(settings={LENGTH_KEY: length}, budget=shorter) if shorter is not None and starts(shorter) else None
    )


def _by_both(budget: HbmBudget) -> SizingRemedy | None:
    most = largest_utilization(budget)
    raised = budget_with(budget, utilization=most) if most > 0 else None
    way = None if raised is None else _by_length(raised)
    return None if way is None else replace(way, settings={UTILIZATION_KEY: most, **way.settings})


def _by_slice(budget: HbmBudget, *, allow_copies: bool) -> SizingRemedy | None:
    """Return the fewest chips of one host that do, of this generation, or the cheapest of another whose limit is known.

    Utilization is changed too where it must be, the length only where no slice holds the whole.
    """
    present = budget.accelerator
    if present.hosts > 1:
        return _by_hosts(budget)
    same = [kind for kind in catalog.generation(present.generation).types if kind.chips >= present.chips]
    others = [kind for kind in catalog.accelerator_types() if kind.generation != present.generation]
    others.sort(key=_least_usd_per_hour)
    measured = [kind for kind in others if has_limit(kind)]
    for kinds in (same, measured, [kind for kind in others if not has_limit(kind)]):
        for shortens in (False, True):
            for kind in kinds:
                way = _on(budget, kind, allow_copies=allow_copies, shortens=shortens) if kind.hosts == 1 else None
                if way is not None:
                    return way
    return _by_hosts(budget)


def _least_usd_per_hour(kind: AcceleratorType) -> float:
    """Return the lowest list price of the slice anywhere, by any provisioning model; infinite where none is known."""
    regions = catalog.generation(kind.generation).prices.values()
    return kind.chips * min((usd for prices in regions for usd in prices.values()), default=math.inf)


def _by_hosts(budget: HbmBudget) -> SizingRemedy | None:
    """Return the fewest hosts of one slice that do, in pipeline stages: of this generation first."""
    kinds = [kind for kind in catalog.accelerator_types() if _is_of_hosts(kind) and has_limit(kind)]
    present = budget.accelerator
    for kind in sorted(kinds, key=lambda kind: (kind.generation != present.generation, kind.chips)):
        split = host_stages(budget, kind)
        way = None if split is None or split.engine == budget.engine else _with_changes(split, shortens=False)
        if way is not None:
            slice_type = {} if kind.name == present.name else {TYPE_KEY: kind.name}
            split_settings = {SPLIT_KEYS[0]: kind.devices_per_host, STAGES_KEY: kind.hosts}
            return replace(way, settings={**slice_type, **split_settings, **way.settings}, most=None)
    return None


def _is_of_hosts(kind: AcceleratorType) -> bool:
    return kind.hosts > 1


def has_limit(kind: AcceleratorType) -> bool:
    """Return whether the HBM limit of its runtime is recorded. Otherwise what it holds is an upper bound."""
    return catalog.generation(kind.generation).bytes_limit is not None


def _on(budget: HbmBudget, kind: AcceleratorType, *, allow_copies: bool, shortens: bool) -> SizingRemedy | None:
    """Return what does on this slice: one copy over all its devices, else the split that holds the most tokens."""
    is_same_slice, present = kind.name == budget.accelerator.name, budget.engine.tensor_parallel
    ways = []
    for split in splits(budget, kind, kind.devices):
        is_present = is_same_slice and split.engine.tensor_parallel == present
        way = None if is_present else _with_changes(split, shortens=shortens)
        if way is not None:
            ways.append(way)
    whole = [way for way in ways if way.budget.engine.data_parallel == 1]
    candidates = whole or (ways if allow_copies else [])
    best = max(candidates, key=lambda way: way.budget.kv_cache_tokens, default=None)
    if best is None:
        return None
    slice_type = {} if is_same_slice else {TYPE_KEY: kind.name}
    return replace(best, settings={**slice_type, **_split_settings(best.budget), **best.settings}, most=None)


def _with_changes(split: HbmBudget, *, shortens: bool) -> SizingRemedy | None:
    if starts(split):
        return SizingRemedy(settings={}, budget=split)
    milder = _by_utilization(split) or _by_kv_type(split, with_utilization=True)
    return milder or ((_by_length(split) or _by_both(split)) if shortens else None)
