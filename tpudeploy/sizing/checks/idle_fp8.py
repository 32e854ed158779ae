"""fp8 for the KV cache where it saves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import engine_of, model_of, warning
from tpudeploy.sizing.kv import bytes_per_token

CODE = "TPU2108"
EXPLANATION = Explanation(
    "An fp8 KV cache saves nothing here",
    "Keys and values are packed into words of four bytes. With one KV head on a chip, four values of one byte take "
    "the place of two values of two bytes, and half of them are padding. Measured on Gemma 4 E2B: the same number "
    "of blocks in both types, and 2 to 6 % less throughput in fp8.",
    "serving: {kv_cache_dtype: auto}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    has_layout = isinstance(deployment.budget, HbmBudget) or deployment.budget.has_layout
    if model is None or engine is None or not has_layout or not engine.kv_dtype.startswith("fp8"):
        return
    in_fp8, plain = bytes_per_token(model, engine), bytes_per_token(model, replace(engine, kv_dtype="auto"))
    if plain <= in_fp8:
        message = (
            f"kv_cache_dtype {engine.kv_dtype} buys nothing here: {in_fp8:,} bytes a token and chip, "
            f"and {plain:,} in {engine.dtype}."
        )
        hint = "Leave it out: it costs accuracy and a little speed."
        yield warning(deployment, CODE, message, path="serving.kv_cache_dtype", hint=hint)
