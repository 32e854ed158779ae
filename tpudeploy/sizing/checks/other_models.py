"""A flag that vLLM refuses with this model: it is for models of another kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import LanguageModel
from tpudeploy.sizing.finding import argument, error, model_of

CODE = "TPU2121"
EXPLANATION = Explanation(
    "A flag for models of another kind",
    "vLLM refuses some flags where the model has no part that they are about: expert parallelism of a model without "
    'experts ends with "Number of experts in the model must be greater than 0". The server would not start.',
    "serving: {args: {enable_expert_parallel: false}}",
)


@frozen
class Row:
    """When the flag asks for it, whether a model has it, and what that is."""

    is_set: Callable[[Json], bool]
    suits: Callable[[LanguageModel], bool]
    needs: str


def _is_on(value: Json) -> bool:
    return value is True


def _returns_experts(value: Json) -> bool:
    return isinstance(value, dict) and str(value.get("enable_return_routed_experts", False)).lower() == "true"


def _has_experts(model: LanguageModel) -> bool:
    return model.experts is not None


def _is_unknown(_: LanguageModel) -> bool:
    """No model that the catalogue describes has it."""
    return False


# vLLM 0.32.0 config/parallel.py and model.py (experts, TerraTorch), config/vllm.py:1153 and 3339.
_ROWS: Mapping[str, Row] = {
    "enable-expert-parallel": Row(is_set=_is_on, suits=_has_experts, needs="experts"),
    "enable-return-routed-experts": Row(is_set=_is_on, suits=_has_experts, needs="experts"),
    "aux-output-config": Row(is_set=_returns_experts, suits=_has_experts, needs="experts"),
    "model-impl": Row(is_set=lambda value: value == "terratorch", suits=_is_unknown, needs="an encoder of TerraTorch"),
    "use-replayssm": Row(is_set=_is_on, suits=_is_unknown, needs="Mamba layers that support it"),
}


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield the flags that are not for the model; nothing of a model that is not known."""
    model = model_of(deployment)
    for name, row in _ROWS.items():
        path, value = argument(deployment, name)
        if model is not None and row.is_set(value) and not row.suits(model):
            message = f"--{name} needs a model with {row.needs}; {model.name} has none: the server would not start."
            yield error(deployment, CODE, message, path=path, hint="Leave it out.")


def is_asked(deployment: Deployment) -> bool:
    """Return whether a flag is written that is for models of some kind alone."""
    return any(row.is_set(argument(deployment, name)[1]) for name, row in _ROWS.items())
