"""A padding gap, which makes more graphs to compile, not fewer."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import sized, warning
from tpudeploy.core.sizing.advice import otherwise
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation

CODE = "TPU2112"
EXPLANATION = Explanation(
    "padding_gap adds graphs to compile",
    "Token buckets are powers of two. With a gap they are powers of two up to it and then every multiple of it: 13 "
    "buckets instead of 9 for 512 and 4,096 tokens. A step is padded less, and a cold start takes longer. 0 makes "
    "the fewest graphs.",
    "serving: {padding_gap: 0}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = sized(deployment)
    plain = otherwise(budget, padding_gap=0) if budget is not None and budget.engine.padding_gap else None
    if budget is None or plain is None or budget.compilation.total <= plain.compilation.total:
        return
    minutes = (budget.start.cold_seconds - plain.start.cold_seconds) / 60
    message = (
        f"padding_gap {budget.engine.padding_gap} makes {budget.compilation.total} graphs instead of "
        f"{plain.compilation.total}: about {minutes:.0f} min more of a cold start."
    )
    hint = "It pads steps less. Keep it if that is what you want; 0 starts sooner."
    yield warning(deployment, CODE, message, path="serving.padding_gap", hint=hint)
