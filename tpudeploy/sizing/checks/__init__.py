"""CHECKS: the problems that a well-formed deployment may have. One function each, in the file of its subject."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, errors_in
from tpudeploy.sizing.checks import durations, family, image, machine, memory, model, placement, requests, unchecked

# In the order in which they are reported.
CHECKS = (
    image.other_release,
    image.known_fault,
    image.ignored_variable,
    placement.no_place,
    placement.open_endpoint,
    placement.open_paths,
    memory.weights_too_large,
    memory.large_by_name,
    memory.no_cache_left,
    memory.length_beyond_cache,
    requests.length_beyond_model,
    memory.program_room,
    model.heads,
    model.other_models,
    family.refused_quantization,
    family.other_case,
    family.encoder_decoder,
    family.refused_model,
    family.router_without_route,
    family.half_a_pair,
    family.other_family,
    memory.copied_cache,
    memory.idle_fp8,
    requests.item_beyond_step,
    requests.step_below_requests,
    memory.small_block,
    memory.many_heads,
    requests.padding_gap,
    model.fast_prefill,
    model.fp8_quantization,
    machine.graph_cache,
    machine.hub_cache,
    machine.boot_disk,
    model.fallback,
    placement.unreachable,
    durations.nothing_to_renew,
    durations.too_short,
    durations.late_renewal,
    durations.endless_drain,
    durations.short_cooldown,
    placement.short_name,
    unchecked.unchecked,
)


def with_verdict(deployment: Deployment, diagnostics: Iterable[Diagnostic]) -> Deployment:
    """Return the deployment with a budget that knows which of these errors keep its server from starting.

    TPU20xx are about places and clients: such a server has no place, or no client reaches it, and its memory suffices.
    """
    codes = dict.fromkeys(each.code for each in errors_in(diagnostics) if each.code.startswith("TPU21"))
    if not codes:
        return deployment
    return replace(deployment, budget=replace(deployment.budget, fatal=tuple(codes)))


def check(deployments: Iterable[Deployment]) -> tuple[Diagnostic, ...]:
    """Return every problem that the checks find."""
    return tuple(diagnostic for deployment in deployments for row in CHECKS for diagnostic in row.find(deployment))
