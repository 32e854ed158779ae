"""A step that is smaller than what must go into it."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import argument, engine_of, error, setting

CODE = "TPU2110"
EXPLANATION = Explanation(
    "max_num_batched_tokens is too small",
    "Each running request takes at least one token of a step, so a step must hold max_num_seqs tokens. Without "
    "chunked prefill it must hold a whole prompt, max_model_len tokens. vLLM refuses less.",
    "serving: {max_num_batched_tokens: 4096, max_num_seqs: 256}",
)

_PATH = "serving.max_num_batched_tokens"
_KEYS = ("max_num_batched_tokens", "max_num_seqs", "max_model_len")


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    engine = engine_of(deployment)
    if engine is None:  # then what the profile writes counts; defaults depend on the model
        tokens, requests, length = (setting(deployment, f"serving.{name}") for name in _KEYS)
    else:
        tokens, requests, length = engine.max_num_batched_tokens, engine.max_num_seqs, engine.max_model_len
    if tokens is not None and requests is not None and tokens < requests:
        message = f"max_num_batched_tokens {tokens} is below max_num_seqs {requests}."
        yield error(deployment, CODE, message, path=_PATH, hint="Raise it, or lower max_num_seqs.")
    elif tokens is not None and length is not None and tokens < length and _is_unchunked(deployment):
        message = f"Without chunked prefill a step must hold max_model_len {length:,} tokens, not {tokens:,}."
        yield error(deployment, CODE, message, path=_PATH, hint="Leave chunked prefill on.")


def _is_unchunked(deployment: Deployment) -> bool:
    return argument(deployment, "enable-chunked-prefill")[1] is False
