"""The search that all advice shares: the mildest change with which a server starts and does what is asked of it.

What may be changed freely, mildest first: utilization, which costs nothing; the type of the KV cache, which costs some
accuracy; the length, which costs the longest requests; the split of the chips; the slice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.sizing.budget import compute_budget
from tpudeploy.sizing.programs import program_room
from tpudeploy.sizing.stages import can_be_split

UTILIZATION_KEY, KV_TYPE_KEY, LENGTH_KEY, TYPE_KEY = "hbm_utilization", "kv_cache_dtype", "max_model_len", "tpu.type"
SPLIT_KEYS = ("tensor_parallel_size", "data_parallel_size")
STAGES_KEY = "args.pipeline_parallel_size"
SMALL_KV_TYPE = "fp8"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingRemedy:
    """A change with which the server starts. `settings` are keys of a profile with their values.

    `budget` is what it then holds. `most`, where utilization is raised, is what the largest safe value holds.
    """

    settings: Mapping[str, object]
    budget: HbmBudget
    most: HbmBudget | None = None


def budget_with(budget: HbmBudget, **changes: Any) -> HbmBudget | None:
    """Return the budget with other settings of the engine, or None where these are not possible."""
    other = compute_budget(budget.model, budget.accelerator, replace(budget.engine, **changes))
    return other if isinstance(other, HbmBudget) else None


def starts(budget: HbmBudget) -> bool:
    """Return whether it holds a request, and leaves programs the room with which boots are known to succeed."""
    room = budget.free_bytes_per_chip + budget.program_bytes_per_chip
    return budget.holds_a_request and room >= program_room(budget.model, budget.engine).proven


def largest_utilization(budget: HbmBudget) -> float:
    """Return the largest utilization of two decimals with which boots are known to succeed."""
    return program_room(budget.model, budget.engine).utilization(budget.hbm_bytes_per_chip)


def splits(budget: HbmBudget, kind: AcceleratorType, devices: int) -> Iterator[HbmBudget]:
    """Yield every split of this number of devices into copies of the model."""
    for tensor in range(1, devices + 1):
        if devices % tensor == 0:
            engine = replace(
                budget.engine, tensor_parallel=tensor, data_parallel=devices // tensor, pipeline_parallel=1
            )
            split = compute_budget(budget.model, kind, engine)
            if isinstance(split, HbmBudget):
                yield split


def host_stages(budget: HbmBudget, kind: AcceleratorType) -> HbmBudget | None:
    """Return the split of a slice of several hosts of which vLLM's tests pass: TP in a host x PP across hosts."""
    if kind.hosts == 1 or not can_be_split(budget.model):
        return None
    engine = replace(
        budget.engine, tensor_parallel=kind.devices_per_host, data_parallel=1, pipeline_parallel=kind.hosts
    )
    split = compute_budget(budget.model, kind, engine)
    return split if isinstance(split, HbmBudget) else None


def small_cache(budget: HbmBudget) -> HbmBudget | None:
    """Return the budget with a KV cache in fp8, or None where that holds no more: one KV head on a chip is padded."""
    small = budget_with(budget, kv_dtype=SMALL_KV_TYPE)
    return small if small is not None and small.kv_cache_tokens > budget.kv_cache_tokens else None


def tunings(budget: HbmBudget) -> Iterator[tuple[Mapping[str, object], HbmBudget]]:
    """Yield this, at the largest safe utilization, and both with a KV cache in fp8; each with what differs."""
    most = largest_utilization(budget)
    for small_settings, way in (({}, budget), ({KV_TYPE_KEY: SMALL_KV_TYPE}, small_cache(budget))):
        if way is None:
            continue
        yield small_settings, way
        tuned = budget_with(way, utilization=most) if most > 0 and most != way.engine.utilization else None
        if tuned is not None:
            yield {UTILIZATION_KEY: most, **small_settings}, tuned
