"""Weights that fit, and leave nothing to answer with."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.advice import longest
from tpudeploy.sizing.checks.weights_too_large import weights_fit
from tpudeploy.sizing.finding import at_least, bounded, error, gib, sized, ways_out

CODE = "TPU2102"
EXPLANATION = Explanation(
    "No memory is left for the KV cache",
    'The weights fit, but not even the shortest request fits beside them. vLLM would stop with "No available '
    'memory for the cache blocks". Give vLLM a larger share of HBM, or take more chips.',
    "serving: {hbm_utilization: 0.92}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    if budget is None or budget.holds_a_request or not weights_fit(budget):
        return
    left = int(budget.hbm_bytes_per_chip * budget.engine.utilization) - budget.weights_bytes_per_chip
    if longest(budget) == 0:
        weights = f"{at_least(deployment)}{gib(budget.weights_bytes_per_chip)} of weights a chip"
        message = (
            f"Beside {weights}, {'at most ' if sized(deployment) is None else ''}{gib(left)} is left: no KV cache."
        )
        hint = ways_out(deployment, budget)
        yield error(deployment, CODE, message, path="serving.hbm_utilization", hint=hint)
