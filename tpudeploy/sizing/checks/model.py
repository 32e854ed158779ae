"""Checks of a model against the chips, the flags and the code that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.model import Implementation, LanguageModel
from tpudeploy.sizing.checks.check import argument, arguments, check_for, error, model_of, warning


@check_for(
    "TPU2106",
    "tensor_parallel_size does not fit the model's heads",
    "A chip holds whole attention heads and whole KV heads. Their number must be divisible by "
    'tensor_parallel_size; for KV heads, the other way round is possible too. vLLM would stop with "Total number '
    'of attention heads … must be divisible".',
    "serving: {tensor_parallel_size: 4, data_parallel_size: 2}",
)
def heads(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = deployment.budget
    if isinstance(budget, Unsized) and budget.is_impossible:
        message = f"{budget.because[:1].upper()}{budget.because[1:]}: the server would not start."
        hint = "Take a power of two that divides both, or copies: data_parallel_size."
        yield error(deployment, message, path="serving.tensor_parallel_size", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRequirement:
    """A flag for models of one kind: `is_set` by its value, whether it `suits` a model, and the part that it needs."""

    is_set: Callable[[Json], bool]
    suits: Callable[[LanguageModel], bool]
    needs: str


def _is_on(value: Json) -> bool:
    return value is True


def _returns_experts(value: Json) -> bool:
    return isinstance(value, dict) and str(value.get("enable_return_routed_experts", False)).lower() == "true"


def _has_experts(model: LanguageModel) -> bool:
    return model.experts is not None


def _suits_none(_: LanguageModel) -> bool:
    """Return False: the catalogue describes no model that has the part."""
    return False


# vLLM 0.32.0 config/parallel.py and model.py (experts, TerraTorch), config/vllm.py.
_ROWS: Mapping[str, FlagRequirement] = {
    "enable-expert-parallel": FlagRequirement(is_set=_is_on, suits=_has_experts, needs="experts"),
    "enable-return-routed-experts": FlagRequirement(is_set=_is_on, suits=_has_experts, needs="experts"),
    "aux-output-config": FlagRequirement(is_set=_returns_experts, suits=_has_experts, needs="experts"),
    "model-impl": FlagRequirement(
        is_set=lambda value: value == "terratorch", suits=_suits_none, needs="an encoder of TerraTorch"
    ),
    "use-replayssm": FlagRequirement(is_set=_is_on, suits=_suits_none, needs="Mamba layers that support it"),
}


@check_for(
    "TPU2121",
    "A flag for models of another kind",
    "Some flags are about a part this model lacks. Expert parallelism without experts, for example, ends with "
    '"Number of experts in the model must be greater than 0". The server wouldn\'t start.',
    "serving: {args: {enable_expert_parallel: false}}",
)
def other_models(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield the flags that are not for the model; nothing for a model that is not known."""
    model, values = model_of(deployment), arguments(deployment)
    for name, row in _ROWS.items():
        path, value = values.get(name, ("", None))
        if model is not None and row.is_set(value) and not row.suits(model):
            message = f"--{name} needs a model with {row.needs}; {model.name} has none: the server would not start."
            yield error(deployment, message, path=path, hint="Leave it out.")


def has_flag_of_some_models(deployment: Deployment) -> bool:
    """Return whether a flag is written that is for models of some kind alone."""
    values = arguments(deployment)
    return any(row.is_set(values.get(name, ("", None))[1]) for name, row in _ROWS.items())


@check_for(
    "TPU2113",
    "--kv-sharing-fast-prefill has no effect on TPU",
    "vLLM accepts the flag. On GPUs it skips prefill work for layers that share a cache; the TPU code does not "
    "read it. Its published gains are those of GPUs.",
    "serving: {args: {kv_sharing_fast_prefill: false}}",
)
def fast_prefill(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "kv-sharing-fast-prefill")
    if value is True:
        message = "--kv-sharing-fast-prefill has no effect on TPU: nothing there reads it."
        yield warning(deployment, message, path=path, hint="Leave it out.")


@check_for(
    "TPU2114",
    "--quantization fp8 on a bfloat16 checkpoint",
    "On TPU the model's code reads fp8 weights from an fp8 checkpoint. It doesn't convert a bfloat16 checkpoint, "
    "so loading fails. Remove the flag, use a checkpoint with fp8 weights, or quantize while loading with "
    "`additional_config` (qwix).",
    "serving: {args: {quantization: null}}",
)
def fp8_quantization(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "quantization")
    model = families.known_model(deployment.model_id)
    is_ours = model is not None and model.implementation is Implementation.JAX and not model.linear_dtype
    is_ours = is_ours and not families.quantization_of(deployment.model_id)
    if is_ours and _implementation(deployment) in ("auto", "flax_nnx") and str(value).startswith("fp8"):
        message = f"{deployment.model_id} is a bfloat16 checkpoint: --quantization {value} would fail to load it."
        generation = catalog.generation(deployment.accelerator.generation)
        hint = "Leave it out, or name a checkpoint with fp8 weights."
        if not generation.computes_fp8:
            hint += f" On {generation.name} it saves memory and no time: its chips compute in bfloat16."
        yield error(deployment, message, path=path, hint=hint)


@check_for(
    "TPU2118",
    "The model runs through torchax",
    "tpu_inference has code of its own for some models. Others, including Qwen's mixtures of experts, run through"
    " vLLM's PyTorch code with torchax. They work, but their compiled programs take 6 GiB per chip or more. The "
    "warning can't be fixed in the profile: leave room for the programs.",
    "serving: {hbm_utilization: 0.8}",
)
def fallback(deployment: Deployment) -> Iterator[Diagnostic]:
    model = model_of(deployment)
    if model is None or model.implementation is not Implementation.TORCHAX:
        return
    is_other_chosen = _implementation(deployment) not in ("auto", Implementation.TORCHAX.value)
    if is_other_chosen or argument(deployment, "model-impl")[1] is not None:
        return  # the profile itself says which implementation runs the model
    message = f"{model.architecture} has no implementation for TPU of its own: it runs through torchax."
    hint = "Its compiled programs are larger; what is said of its memory is an estimate."
    yield warning(deployment, message, path="model.id", hint=hint)


def _implementation(deployment: Deployment) -> str:
    """Return the implementation that the environment chooses; it takes precedence over the model's own."""
    return deployment.container.environment.get("MODEL_IMPL_TYPE", "auto")
