"""A tensor parallelism that does not divide the model's heads."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import error

CODE = "TPU2106"
EXPLANATION = Explanation(
    "tensor_parallel_size does not fit the model's heads",
    "A chip holds whole attention heads and whole KV heads. Their number must be divisible by "
    'tensor_parallel_size; for KV heads, the other way round is possible too. vLLM would stop with "Total number '
    'of attention heads … must be divisible".',
    "serving: {tensor_parallel_size: 4, data_parallel_size: 2}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = deployment.budget
    if isinstance(budget, Unsized) and budget.is_impossible:
        message = f"{budget.because[:1].upper()}{budget.because[1:]}: the server would not start."
        hint = "Take a power of two that divides both, or copies: data_parallel_size."
        yield error(deployment, CODE, message, path="serving.tensor_parallel_size", hint=hint)
