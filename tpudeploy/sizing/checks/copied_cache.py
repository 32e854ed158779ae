"""More chips than KV heads: the cache is copied instead of shared out."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.advice import best_copies
from tpudeploy.sizing.finding import sized, warning

CODE = "TPU2107"
EXPLANATION = Explanation(
    "Tensor parallelism beyond the KV heads copies the cache",
    "A chip holds whole KV heads. With more chips than KV heads, several chips hold copies of the same head: they "
    "add no room for tokens, only what their share of the weights frees. Copies of the whole model "
    "(data_parallel_size) add room where one fits.",
    "serving: {tensor_parallel_size: 1, data_parallel_size: 4}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    """Silent where only some layers are copied and the weights need the chips: nothing better can be had."""
    budget = sized(deployment)
    chips = 0 if budget is None else budget.engine.tensor_parallel
    if budget is None or not budget.holds_a_request or min(budget.model.kv_heads) >= chips:
        return
    other = best_copies(budget)
    if other is None and max(budget.model.kv_heads) >= chips:
        return
    heads = min(budget.model.kv_heads)
    message = (
        f"Layers with {heads} KV head{'s' if heads > 1 else ''} are cached {chips // heads} times over {chips} chips: "
        f"{budget.kv_bytes_per_token_per_chip:,} bytes a token on each, {budget.kv_cache_tokens:,} tokens in all."
    )
    yield warning(deployment, CODE, message, path="serving.tensor_parallel_size", hint=_hint(other))


def _hint(other: HbmBudget | None) -> str:
    if other is None:
        return "No split into copies holds more: the weights need these chips."
    engine = other.engine
    split = f"tensor_parallel_size {engine.tensor_parallel} x data_parallel_size {engine.data_parallel}"
    return f"{split} would hold {other.kv_cache_tokens:,}."
