"""A padding gap, which makes more graphs to compile, not fewer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.advice import otherwise
from tpudeploy.sizing.finding import bounded, engine_of, warning
from tpudeploy.sizing.graphs import token_buckets

CODE = "TPU2112"
EXPLANATION = Explanation(
    "padding_gap adds graphs to compile",
    "Token buckets are powers of two. With a gap they are powers of two up to it and then every multiple of it: 13 "
    "buckets instead of 9 for 512 and 4,096 tokens. A step is padded less, and a cold start takes longer. 0 makes "
    "the fewest graphs.",
    "serving: {padding_gap: 0}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    engine, budget = engine_of(deployment), bounded(deployment)
    if engine is None or not engine.padding_gap or not engine.is_precompiled:
        return
    plain = otherwise(budget, padding_gap=0) if budget is not None else None
    if budget is not None and plain is not None:
        if budget.compilation.total <= plain.compilation.total:
            return
        minutes = (budget.start.cold_seconds - plain.start.cold_seconds) / 60
        message = (
            f"padding_gap {engine.padding_gap} makes {budget.compilation.total} graphs instead of "
            f"{plain.compilation.total}: about {minutes:.0f} min more of a cold start."
        )
    else:  # how many graphs a bucket makes depends on the model
        buckets, without = (len(token_buckets(each)) for each in (engine, replace(engine, padding_gap=0)))
        if buckets <= without:
            return
        message = (
            f"padding_gap {engine.padding_gap} makes {buckets} token buckets instead of {without}, each with graphs of "
            "its own: a cold start takes longer."
        )
    hint = "It pads steps less. Keep it if that is what you want; 0 starts sooner."
    yield warning(deployment, CODE, message, path="serving.padding_gap", hint=hint)
