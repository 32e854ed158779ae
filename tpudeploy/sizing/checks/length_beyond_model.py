"""A `max_model_len` beyond what the model was made for."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import engine_of, error, model_of

CODE = "TPU2104"
EXPLANATION = Explanation(
    "max_model_len is larger than the model's own limit",
    'vLLM refuses a length that the model was not made for: "User-specified max_model_len is greater than the '
    "derived max_model_len\". Leave the key out for the model's limit, or write a smaller length.",
    "serving: {max_model_len: 32768}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    model, engine = model_of(deployment), engine_of(deployment)
    if deployment.container.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") == "1":
        return
    if model is not None and engine is not None and engine.max_model_len > model.max_position:
        message = f"max_model_len {engine.max_model_len:,} exceeds the {model.max_position:,} of {model.name}."
        hint = f"max_model_len: {model.max_position} is its limit."
        yield error(deployment, CODE, message, path="serving.max_model_len", hint=hint)
