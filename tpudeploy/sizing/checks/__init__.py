"""CHECKS: what is worth saying of a deployment that is well-formed. One file, one check, one row here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation, errors_in
from tpudeploy.sizing.checks import (
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
    no_place,
    nothing_to_renew,
    open_endpoint,
    other_models,
    padding_gap,
    program_room,
    small_block,
    step_below_requests,
    unchecked,
    unreachable,
    weights_too_large,
)


class Check(Protocol):
    """What each file here is: `CODE` is stable and what `find` yields, `EXPLANATION` what `tpudeploy explain` says."""

    CODE: str
    EXPLANATION: Explanation

    def find(self, deployment: Deployment, /) -> Iterator[Diagnostic]: ...


# In the order in which they are told.
CHECKS: tuple[Check, ...] = (
    no_place,
    open_endpoint,
    weights_too_large,
    no_cache_left,
    length_beyond_cache,
    length_beyond_model,
    program_room,
    heads,
    other_models,
    copied_cache,
    idle_fp8,
    item_beyond_step,
    step_below_requests,
    small_block,
    padding_gap,
    fast_prefill,
    fp8_quantization,
    graph_cache,
    hub_cache,
    boot_disk,
    fallback,
    unreachable,
    nothing_to_renew,
    unchecked,
)


def with_verdict(deployment: Deployment, diagnostics: Iterable[Diagnostic]) -> Deployment:
    """Return the deployment with a budget that knows which of these errors keep its server from starting.

    TPU20xx are about places and clients: such a server has no place, or nobody reaches it, and its memory suffices.
    """
    codes = dict.fromkeys(each.code for each in errors_in(diagnostics) if each.code.startswith("TPU21"))
    return replace(deployment, budget=replace(deployment.budget, fatal=tuple(codes)))


def check(deployments: Iterable[Deployment]) -> tuple[Diagnostic, ...]:
    """Everything that the checks have to say."""
    return tuple(d for deployment in deployments for row in CHECKS for d in row.find(deployment))
