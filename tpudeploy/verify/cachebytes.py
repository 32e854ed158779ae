"""Which type the KV cache really has: by the bytes that a token takes of it, not by any name.

Memory of the cache on a chip / tokens = bytes of a token; each type makes that another number (sizing/kv.py),
unless packing makes them equal: then the bytes tell nothing, and are no witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.domain.budget import Engine, HbmBudget
from tpudeploy.domain.model import Implementation
from tpudeploy.sizing.kv import blocks_per_request, layout
from tpudeploy.sizing.numbers import parse_number

_TYPES = ("bfloat16", "fp8")
_ABOUT = 0.02  # the log has two decimals of GiB; types differ by tens of per cent


def measured(budget: HbmBudget, log: Mapping[str, str]) -> float | None:
    """Bytes of a token on one chip, as the boot log's memory and tokens of one rank have it."""
    memory, tokens = parse_number(log.get("kv_cache_bytes")), parse_number(log.get("kv_cache_tokens"))
    return memory / budget.engine.tensor_parallel / tokens if memory and tokens else None


def type_of(each: float, budget: HbmBudget) -> str | None:
    """The declared type, or the one that `each` bytes speak for. None where they speak for none, or for all alike.

    Only where the layout was checked to the token on measured boots: tpu_inference's own models.
    """
    if budget.model.implementation is not Implementation.JAX:
        return None
    declared = budget.engine.kv_dtype
    sizes = {kind: _bytes(budget, kind) for kind in (declared, *_TYPES)}
    if len(set(sizes.values())) == 1:
        return None
    return next((kind for kind, size in sizes.items() if abs(each - size) <= _ABOUT * size), None)


def _bytes(budget: HbmBudget, kind: str) -> float:
    engine: Engine = replace(budget.engine, kv_dtype=kind)
    kv = layout(budget.model, engine, budget.block_size)
    blocks = blocks_per_request(kv, engine, budget.block_size, engine.max_model_len)
    tokens = -(-engine.max_model_len // budget.block_size) * budget.block_size
    return kv.bytes_per_block * blocks / tokens
