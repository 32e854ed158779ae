"""CHECKS: what is worth saying of a deployment that is well-formed. One file, one check, one row here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tpudeploy.core.checks import (
    boot_disk,
    copied_cache,
    fallback,
    fast_prefill,
    fp8_quantization,
    graph_cache,
    heads,
    hub_cache,
    idle_fp8,
    item_beyond_step,
    length_beyond_cache,
    length_beyond_model,
    no_cache_left,
    open_endpoint,
    padding_gap,
    program_room,
    small_block,
    step_below_requests,
    unreachable,
    weights_too_large,
)
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`code` is stable and what `find` yields; `meaning` is what `tpudeploy explain` says."""

    code: str
    meaning: str
    find: Callable[[Deployment], Iterator[Diagnostic]]


# In the order in which they are told.
CHECKS: tuple[Check, ...] = (
    Check(code=open_endpoint.CODE, meaning=open_endpoint.MEANING, find=open_endpoint.find),
    Check(code=weights_too_large.CODE, meaning=weights_too_large.MEANING, find=weights_too_large.find),
    Check(code=no_cache_left.CODE, meaning=no_cache_left.MEANING, find=no_cache_left.find),
    Check(code=length_beyond_cache.CODE, meaning=length_beyond_cache.MEANING, find=length_beyond_cache.find),
    Check(code=length_beyond_model.CODE, meaning=length_beyond_model.MEANING, find=length_beyond_model.find),
    Check(code=program_room.CODE, meaning=program_room.MEANING, find=program_room.find),
    Check(code=heads.CODE, meaning=heads.MEANING, find=heads.find),
    Check(code=copied_cache.CODE, meaning=copied_cache.MEANING, find=copied_cache.find),
    Check(code=idle_fp8.CODE, meaning=idle_fp8.MEANING, find=idle_fp8.find),
    Check(code=item_beyond_step.CODE, meaning=item_beyond_step.MEANING, find=item_beyond_step.find),
    Check(code=step_below_requests.CODE, meaning=step_below_requests.MEANING, find=step_below_requests.find),
    Check(code=small_block.CODE, meaning=small_block.MEANING, find=small_block.find),
    Check(code=padding_gap.CODE, meaning=padding_gap.MEANING, find=padding_gap.find),
    Check(code=fast_prefill.CODE, meaning=fast_prefill.MEANING, find=fast_prefill.find),
    Check(code=fp8_quantization.CODE, meaning=fp8_quantization.MEANING, find=fp8_quantization.find),
    Check(code=graph_cache.CODE, meaning=graph_cache.MEANING, find=graph_cache.find),
    Check(code=hub_cache.CODE, meaning=hub_cache.MEANING, find=hub_cache.find),
    Check(code=boot_disk.CODE, meaning=boot_disk.MEANING, find=boot_disk.find),
    Check(code=fallback.CODE, meaning=fallback.MEANING, find=fallback.find),
    Check(code=unreachable.CODE, meaning=unreachable.MEANING, find=unreachable.find),
)


def check(deployments: Iterable[Deployment]) -> tuple[Diagnostic, ...]:
    """Everything that the checks have to say."""
    return tuple(d for deployment in deployments for row in CHECKS for d in row.find(deployment))
