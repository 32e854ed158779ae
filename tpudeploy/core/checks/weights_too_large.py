"""Weights that do not go into the share of HBM they may have."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import error, gib, sized
from tpudeploy.core.sizing.advice import smallest_slice
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation

CODE = "TPU2101"
EXPLANATION = Explanation(
    "The weights do not fit",
    "A chip's share of the weights is larger than hbm_utilization x its HBM. vLLM would stop with "
    '"total_hbm_used_gb=… exceeds total_hbm_limit_cap_gb=…". More chips share the weights; the command below shows '
    "what fits on which slice.",
    "tpu: {type: v6e-4}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = sized(deployment)
    if budget is None or weights_fit(budget):
        return
    cap = int(budget.hbm_bytes_per_chip * budget.engine.utilization)
    message = (
        f"{budget.model.name} does not fit: {gib(budget.weights_bytes_per_chip)} of weights a chip, and "
        f"{gib(cap)} for them and the KV cache."
    )
    larger = smallest_slice(budget)
    hint = f"{larger.name} is the smallest slice that holds it." if larger else "No slice of one host holds it."
    yield error(deployment, CODE, message, path="tpu.type", hint=hint)


def weights_fit(budget: HbmBudget) -> bool:
    return budget.weights_bytes_per_chip < budget.hbm_bytes_per_chip * budget.engine.utilization
