"""fp8 for the KV cache where it saves nothing."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import sized, warning
from tpudeploy.core.sizing.advice import otherwise
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation

CODE = "TPU2108"
EXPLANATION = Explanation(
    "An fp8 KV cache saves nothing here",
    "Keys and values are packed into words of four bytes. With one KV head on a chip, four values of one byte take "
    "the place of two values of two bytes, and half of them are padding. Measured on Gemma 4 E2B: the same number "
    "of blocks in both types, and 2 to 6 % less throughput in fp8.",
    "serving: {kv_cache_dtype: auto}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = sized(deployment)
    if budget is None or not budget.engine.kv_dtype.startswith("fp8"):
        return
    plain = otherwise(budget, kv_dtype="auto")
    if plain is not None and plain.bytes_per_block <= budget.bytes_per_block:
        bytes_in_fp8, bytes_plain = budget.kv_bytes_per_token_per_chip, plain.kv_bytes_per_token_per_chip
        message = (
            f"kv_cache_dtype {budget.engine.kv_dtype} buys nothing here: {bytes_in_fp8:,} bytes a token and chip, "
            f"and {bytes_plain:,} in {budget.engine.dtype}."
        )
        hint = "Leave it out: it costs accuracy and a little speed."
        yield warning(deployment, CODE, message, path="serving.kv_cache_dtype", hint=hint)
