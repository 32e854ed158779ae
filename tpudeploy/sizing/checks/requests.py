"""Checks of what one request and one step may hold, and of the graphs that steps are padded to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.sizing.checks.check import argument, bounded, check_for, engine_of, error, model_of, setting, warning
from tpudeploy.sizing.graphs import token_buckets
from tpudeploy.sizing.search import budget_with

_STEP = "serving.max_num_batched_tokens"


@check_for(
    "TPU2104",
    "max_model_len is larger than the model's own limit",
    "vLLM refuses lengths beyond the model's own: \"User-specified max_model_len is greater than the derived "
    "max_model_len\". Remove the key to use the model's limit, or set a smaller length.",
    "serving: {max_model_len: 32768}",
)
def length_beyond_model(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    if deployment.container.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") == "1":
        return
    if model is not None and engine is not None and engine.max_model_len > model.max_position:
        message = f"max_model_len {engine.max_model_len:,} exceeds the {model.max_position:,} of {model.name}."
        hint = f"max_model_len: {model.max_position} is its limit."
        yield error(deployment, message, path="serving.max_model_len", hint=hint)


@check_for(
    "TPU2109",
    "max_num_batched_tokens is smaller than one image or video",
    "With disable_chunked_mm_input, every image or video must fit into one step. If the largest doesn't, vLLM "
    "doesn't start: \"Chunked MM input disabled but max_tokens_per_mm_item (2496) is larger than "
    'max_num_batched_tokens". A video of Gemma 4 is 32 frames of 78 tokens, 2,496, even if only images are '
    "limited. Raise the step, or allow no videos: args: {limit_mm_per_prompt: {video: 0}}.",
    "serving: {max_num_batched_tokens: 4096}",
)
def item_beyond_step(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    if model is None or engine is None or not engine.is_multimodal:
        return
    if argument(deployment, "disable-chunked-mm-input")[1] is not True:
        return
    _, limits = argument(deployment, "limit-mm-per-prompt")
    sizes = {kind: size for kind, size in model.item_tokens.items() if not _is_zero(limits, kind)}
    kind = max(sizes, key=lambda name: sizes[name], default="")
    if kind and engine.max_num_batched_tokens < sizes[kind]:
        message = (
            f"A step of {engine.max_num_batched_tokens:,} tokens cannot hold one {kind} of {sizes[kind]:,}, "
            "and chunking is off: the server would not start."
        )
        hint = f"max_num_batched_tokens: {sizes[kind]} or more, or limit_mm_per_prompt: {{{kind}: 0}}."
        yield error(deployment, message, path=_STEP, hint=hint)


def _is_zero(limits: Json, kind: str) -> bool:
    limit = limits.get(kind) if isinstance(limits, Mapping) else None
    count = limit.get("count") if isinstance(limit, Mapping) else limit
    return count is not None and count == 0


@check_for(
    "TPU2110",
    "max_num_batched_tokens is too small",
    "Each running request takes at least one token of a step, so a step must hold max_num_seqs tokens. Without "
    "chunked prefill it must hold a whole prompt, max_model_len tokens. vLLM refuses less.",
    "serving: {max_num_batched_tokens: 4096, max_num_seqs: 256}",
)
def step_below_requests(deployment: Deployment) -> Iterator[Diagnostic]:
    engine = engine_of(deployment)
    if engine is None:  # only what the profile writes is known: defaults depend on the model
        names = ("max_num_batched_tokens", "max_num_seqs", "max_model_len")
        tokens, requests, length = (setting(deployment, f"serving.{name}") for name in names)
    else:
        tokens, requests, length = engine.max_num_batched_tokens, engine.max_num_seqs, engine.max_model_len
    if tokens is None:
        return
    is_unchunked = argument(deployment, "enable-chunked-prefill")[1] is False
    if requests is not None and tokens < requests:
        message = f"max_num_batched_tokens {tokens} is below max_num_seqs {requests}."
        yield error(deployment, message, path=_STEP, hint="Raise it, or lower max_num_seqs.")
    elif length is not None and tokens < length and is_unchunked:
        message = f"Without chunked prefill a step must hold max_model_len {length:,} tokens, not {tokens:,}."
        yield error(deployment, message, path=_STEP, hint="Leave chunked prefill on.")


@check_for(
    "TPU2112",
    "padding_gap adds graphs to compile",
    "Token buckets are powers of two. With a gap they are powers of two up to it and then every multiple of it: "
    "13 buckets instead of 9 for 512 and 4,096 tokens. Steps get less padding but a cold start takes longer. 0 "
    "compiles the fewest graphs.",
    "serving: {padding_gap: 0}",
)
def padding_gap(deployment: Deployment) -> Iterator[Diagnostic]:
    engine, budget = engine_of(deployment), bounded(deployment)
    if engine is None or not engine.padding_gap or not engine.is_precompiled:
        return
    plain = budget_with(budget, padding_gap=0) if budget is not None else None
    if budget is not None and plain is not None:
        if budget.compilation.total <= plain.compilation.total:
            return
        minutes = (budget.start.cold_seconds - plain.start.cold_seconds) / 60
        message = (
            f"padding_gap {engine.padding_gap} makes {budget.compilation.total} graphs instead of "
            f"{plain.compilation.total}: about {minutes:.0f} min more of a cold start."
        )
    else:  # the number of graphs for each bucket depends on the model
        buckets, without = (len(token_buckets(each, each.release)) for each in (engine, replace(engine, padding_gap=0)))
        if buckets <= without:
            return
        message = (
            f"padding_gap {engine.padding_gap} makes {buckets} token buckets instead of {without}, each with graphs of "
            "its own: a cold start takes longer."
        )
    hint = "It pads steps less. Keep it if that is what you want; 0 starts sooner."
    yield warning(deployment, message, path="serving.padding_gap", hint=hint)
