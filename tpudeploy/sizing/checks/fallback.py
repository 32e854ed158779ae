"""A model that runs through the slower implementation."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.domain.model import Implementation
from tpudeploy.sizing.finding import argument, model_of, warning

CODE = "TPU2118"
EXPLANATION = Explanation(
    "The model runs through torchax",
    "tpu_inference has code of its own for some models. Others, and Qwen's mixtures of experts, run through vLLM's "
    "PyTorch code with torchax. They work, but their compiled programs take 6 GiB a chip and more. The warning "
    "stays for as long as the model is such a one: leave the programs room.",
    "serving: {hbm_utilization: 0.8}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    model = model_of(deployment)
    if model is not None and model.implementation is Implementation.TORCHAX and not _is_chosen(deployment):
        message = f"{model.architecture} has no implementation for TPU of its own: it runs through torchax."
        hint = "Its compiled programs are larger; what is said of its memory is an estimate."
        yield warning(deployment, CODE, message, path="model.id", hint=hint)


def _is_chosen(deployment: Deployment) -> bool:
    """Return whether the profile itself says which implementation runs the model."""
    asked = deployment.container.environment.get("MODEL_IMPL_TYPE", "auto")
    return asked not in ("auto", Implementation.TORCHAX.value) or argument(deployment, "model-impl")[1] is not None
