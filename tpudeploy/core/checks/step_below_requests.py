"""A step that is smaller than what must go into it."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import argument, error, sized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation

CODE = "TPU2110"
EXPLANATION = Explanation(
    "max_num_batched_tokens is too small",
    "Each running request takes at least one token of a step, so a step must hold max_num_seqs tokens. Without "
    "chunked prefill it must hold a whole prompt, max_model_len tokens. vLLM refuses less.",
    "serving: {max_num_batched_tokens: 4096, max_num_seqs: 256}",
)

_PATH = "serving.max_num_batched_tokens"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = sized(deployment)
    if budget is None:
        return
    engine = budget.engine
    if engine.max_num_batched_tokens < engine.max_num_seqs:
        message = f"max_num_batched_tokens {engine.max_num_batched_tokens} is below max_num_seqs {engine.max_num_seqs}."
        yield error(deployment, CODE, message, path=_PATH, hint="Raise it, or lower max_num_seqs.")
    elif engine.max_num_batched_tokens < engine.max_model_len and _is_unchunked(deployment):
        message = (
            f"Without chunked prefill a step must hold max_model_len {engine.max_model_len:,} tokens, not "
            f"{engine.max_num_batched_tokens:,}."
        )
        yield error(deployment, CODE, message, path=_PATH, hint="Leave chunked prefill on.")


def _is_unchunked(deployment: Deployment) -> bool:
    return argument(deployment, "enable-chunked-prefill")[1] is False
