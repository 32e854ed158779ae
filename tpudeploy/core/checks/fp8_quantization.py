"""fp8 weights asked of a checkpoint that has none."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog import families
from tpudeploy.core.finding import argument, error
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.model import Implementation

CODE = "TPU2114"
MEANING = """--quantization fp8 on a bfloat16 checkpoint

On TPU the model's code reads fp8 weights from an fp8 checkpoint; it does not make them from a bfloat16 one, and the
load fails. Take a quantised checkpoint, or quantise while loading through `additional_config` (qwix)."""


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "quantization")
    model = families.known(deployment.model_id)
    asked = deployment.container.environment.get("MODEL_IMPL_TYPE", "auto")
    if model is None or model.implementation is not Implementation.JAX or asked not in ("auto", "flax_nnx"):
        return
    if str(value).startswith("fp8"):
        message = f"{deployment.model_id} is a bfloat16 checkpoint: --quantization {value} would fail to load it."
        yield error(deployment, CODE, message, path=path, hint="Leave it out, or name a checkpoint with fp8 weights.")
