"""What would fit, where something does not: the same deployment with one setting changed until it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tpudeploy import catalog
from tpudeploy.core.sizing.budget import budget
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import Engine, HbmBudget, Unsized

_STEP = 16  # the smallest block: lengths between two blocks cost the same
_LONG = 8_192  # just beyond it the default block shrinks from 256 to 16: the one place where more may cost less


def longest(of: HbmBudget) -> int:
    """The largest `max_model_len` of which one request fits, or 0."""
    most = min(of.engine.max_model_len, of.model.max_position)
    return _longest(of, _LONG, most) or _longest(of, 0, min(_LONG, most))


def fitted(of: HbmBudget | Unsized) -> HbmBudget | Unsized:
    """Return the budget with the length that `max_model_len: auto` ends in: the model's own, or the most that fits.

    vLLM decides the block size before it shortens the length, for the model's own.
    """
    if isinstance(of, Unsized) or of.fits:
        return of
    fixed = otherwise(of, block_size=of.block_size)
    length = 0 if fixed is None else longest(fixed)
    shortened = otherwise(of, block_size=of.block_size, max_model_len=length) if length else None
    return shortened or of


def smallest_slice(of: HbmBudget) -> AcceleratorType | None:
    """The smallest slice of the generation, of one host, on which one copy over all chips fits."""
    types = catalog.generation(of.accelerator.generation).types
    return next((kind for kind in types if kind.hosts == 1 and _fits_on(of, kind)), None)


def best_copies(of: HbmBudget) -> HbmBudget | None:
    """The split of the same chips into copies that holds the most tokens, if it beats this one."""
    fitting = [other for other in _splits(of) if other.fits and other.kv_cache_tokens > of.kv_cache_tokens]
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
    return other is not None and other.fits


def _fits_on(of: HbmBudget, kind: AcceleratorType) -> bool:
    engine: Engine = replace(of.engine, tensor_parallel=kind.chips, data_parallel=1)
    found = budget(of.model, kind, engine)
    return isinstance(found, HbmBudget) and found.fits


def _splits(of: HbmBudget) -> Iterator[HbmBudget]:
    chips = of.engine.tensor_parallel * of.engine.data_parallel
    for tensor in range(1, chips + 1):
        if chips % tensor == 0:
            other = otherwise(of, tensor_parallel=tensor, data_parallel=chips // tensor)
            if other is not None:
                yield other
