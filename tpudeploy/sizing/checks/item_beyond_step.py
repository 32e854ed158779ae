"""A multimodal item that does not go into one step, with chunking off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import argument, engine_of, error, model_of

CODE = "TPU2109"
EXPLANATION = Explanation(
    "max_num_batched_tokens is smaller than one image or video",
    "With disable_chunked_mm_input, an image or a video must fit into one step, and vLLM does not start if the "
    'largest does not: "Chunked MM input disabled but max_tokens_per_mm_item (2496) is larger than '
    'max_num_batched_tokens". A video of Gemma 4 is 32 frames of 78 tokens, 2,496, even if only images are '
    "limited. Raise the step, or allow no videos: args: {limit_mm_per_prompt: {video: 0}}.",
    "serving: {max_num_batched_tokens: 4096}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    if model is None or engine is None or not engine.is_multimodal:
        return
    if argument(deployment, "disable-chunked-mm-input")[1] is not True:
        return
    _, limits = argument(deployment, "limit-mm-per-prompt")
    allowed = {kind: size for kind, size in model.item_tokens.items() if not _is_zero(limits, kind)}
    largest = max(allowed.values(), default=0)
    if engine.max_num_batched_tokens < largest:
        kind = next(kind for kind, size in allowed.items() if size == largest)
        message = (
            f"A step of {engine.max_num_batched_tokens:,} tokens cannot hold one {kind} of {largest:,}, "
            "and chunking is off: the server would not start."
        )
        hint = f"max_num_batched_tokens: {largest} or more, or limit_mm_per_prompt: {{{kind}: 0}}."
        yield error(deployment, CODE, message, path="serving.max_num_batched_tokens", hint=hint)


def _is_zero(limits: Json, kind: str) -> bool:
    limit = limits.get(kind) if isinstance(limits, Mapping) else None
    count = limit.get("count") if isinstance(limit, Mapping) else limit
    return count == 0 and count is not None
