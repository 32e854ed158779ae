"""What the engine can do with a cell, asked before anything is sent: by the profile's budget, or by its own word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.load import Point
from tpudeploy.sizing.serve import Service, Verdict, can_serve


def feasible(point: Point, budget: HbmBudget | Unsized | None, engine: Mapping[str, str]) -> Verdict | None:
    """None where nobody knows. What the engine says of itself (`engine`) counts more than what was computed."""
    if isinstance(budget, HbmBudget):
        known = _as_told(budget, engine)
        users, context, output = point.sizes
        return can_serve(known, users=users, context=context, output=output)
    return _by_its_word(point, engine)


def _as_told(budget: HbmBudget, engine: Mapping[str, str]) -> HbmBudget:
    length, blocks = _number(engine, "max_model_len"), _number(engine, "num_blocks")
    known = budget if length is None else replace(budget, engine=replace(budget.engine, max_model_len=length))
    is_same_size = _number(engine, "block_size") == budget.block_size
    return known if blocks is None or not is_same_size else replace(known, num_blocks=blocks)


def _by_its_word(point: Point, engine: Mapping[str, str]) -> Verdict | None:
    """Length, and tokens of its cache in whole blocks; how many requests it runs at once, it does not tell."""
    length, cache = _number(engine, "max_model_len"), _number(engine, "kv_cache_tokens")
    streams, context, output = point.sizes
    tokens = context + output
    if length is not None and tokens > length:
        why = f"{context} + {output} tokens exceed max_model_len {length}"
        return Verdict(service=Service.REFUSED, at_once=0, why=why)
    if cache is None:
        return None
    block = _number(engine, "block_size") or 1
    room = cache // (-(-tokens // block) * block)
    if streams <= room:
        return Verdict(service=Service.FITS, at_once=streams, why=f"{room} such requests run at once")
    why = f"{room} of {streams} run at once, for want of KV cache; the rest queue"
    return Verdict(service=Service.QUEUES, at_once=room, why=why)


def _number(engine: Mapping[str, str], name: str) -> int | None:
    value = engine.get(name, "")
    return int(value) if value.isdecimal() else None
