"""Weights that do not go into the share of HBM they may have."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import at_least, bounded, error, gib, ways_out

CODE = "TPU2101"
EXPLANATION = Explanation(
    "The weights do not fit",
    "A chip's share of the weights is larger than hbm_utilization x its HBM. vLLM would stop with "
    '"total_hbm_used_gb=… exceeds total_hbm_limit_cap_gb=…". The message names what is enough, computed in this order: '
    "a larger share, a shorter max_model_len, a slice with more chips, which share the weights.",
    "tpu: {type: v6e-4}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    if budget is None or weights_fit(budget):
        return
    cap = int(budget.hbm_bytes_per_chip * budget.engine.utilization)
    message = (
        f"{budget.model.name} does not fit: {at_least(deployment)}{gib(budget.weights_bytes_per_chip)} of weights a "
        f"chip, and {gib(cap)} for them and the KV cache."
    )
    hint = ways_out(deployment, budget)
    yield error(deployment, CODE, message, path="tpu.type", hint=hint)


def weights_fit(budget: HbmBudget) -> bool:
    return budget.weights_bytes_per_chip < budget.hbm_bytes_per_chip * budget.engine.utilization
