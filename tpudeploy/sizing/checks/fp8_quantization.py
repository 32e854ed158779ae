"""fp8 weights asked of a checkpoint that has none."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog import families
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.domain.model import Implementation
from tpudeploy.sizing.finding import argument, error

CODE = "TPU2114"
EXPLANATION = Explanation(
    "--quantization fp8 on a bfloat16 checkpoint",
    "On TPU the model's code reads fp8 weights from an fp8 checkpoint. It does not convert those of a bfloat16 "
    "checkpoint, and loading them fails. Leave the flag out, name a checkpoint with fp8 weights, or quantize while "
    "loading with `additional_config` (qwix).",
    "serving: {args: {quantization: null}}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "quantization")
    model = families.find_model(deployment.model_id)
    asked = deployment.container.environment.get("MODEL_IMPL_TYPE", "auto")
    if model is None or model.implementation is not Implementation.JAX or asked not in ("auto", "flax_nnx"):
        return
    if str(value).startswith("fp8"):
        message = f"{deployment.model_id} is a bfloat16 checkpoint: --quantization {value} would fail to load it."
        yield error(deployment, CODE, message, path=path, hint="Leave it out, or name a checkpoint with fp8 weights.")
