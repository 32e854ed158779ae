"""A `max_model_len` of which not one request fits in the KV cache."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.advice import longest
from tpudeploy.sizing.finding import bounded, error, sized, ways_out

CODE = "TPU2103"
EXPLANATION = Explanation(
    "max_model_len is larger than the KV cache",
    "vLLM starts only if one request of full length fits in the KV cache, with one block set aside. Otherwise it "
    'stops with "To serve at least one request with the model\'s max seq len …". The message names the largest '
    "length that fits.",
    "serving: {max_model_len: 8192}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    most = 0 if budget is None or budget.holds_a_request else longest(budget)
    if budget is None or not most:
        return
    is_exact = sized(deployment) is not None
    length, blocks = budget.engine.max_model_len, budget.blocks_per_request
    message = (
        f"One request of max_model_len {length:,} takes {blocks:,} blocks of {budget.block_size} and one is set aside: "
        f"the KV cache has {'' if is_exact else 'at most '}{budget.num_blocks:,}."
    )
    hint = ways_out(deployment, budget)
    yield error(deployment, CODE, message, path="serving.max_model_len", hint=hint)
