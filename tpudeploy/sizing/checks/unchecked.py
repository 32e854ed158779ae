"""The checks that could not run, and why: a check that lacks a figure is named, never left out in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tpudeploy.catalog import families
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.task import Task
from tpudeploy.node.mounts import hub_home, is_memory
from tpudeploy.sizing.checks.check import argument, check_for, setting, warning
from tpudeploy.sizing.checks.family import has_setting_of_a_family
from tpudeploy.sizing.checks.model import has_flag_of_some_models


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedQuestion:
    """A question that some checks answer. `lack` is the key in `_lacks` of what they do not know."""

    codes: tuple[str, ...]
    lack: str
    what: str


SUBJECTS = (
    UncheckedQuestion(
        codes=("TPU2101", "TPU2102", "TPU2103"),
        lack="bytes",
        what="whether the weights and one request of max_model_len fit in HBM",
    ),
    UncheckedQuestion(
        codes=("TPU2101", "TPU2102", "TPU2103"),
        lack="added bytes",
        what="whether the weights and one request fit in HBM together with that (without it, they do)",
    ),
    UncheckedQuestion(
        codes=("TPU2101", "TPU2102", "TPU2103"),
        lack="limit",
        what="whether the weights and one request really fit in HBM (in the nominal HBM, they do)",
    ),
    UncheckedQuestion(codes=("TPU2105",), lack="bytes", what="whether compiled programs have room"),
    UncheckedQuestion(codes=("TPU2104",), lack="length", what="whether the model allows that max_model_len"),
    UncheckedQuestion(codes=("TPU2106",), lack="heads", what="whether the chips can share the model's heads"),
    UncheckedQuestion(codes=("TPU2107",), lack="shares", what="whether the chips share the KV cache or copy it"),
    UncheckedQuestion(codes=("TPU2108",), lack="layout", what="whether an fp8 KV cache saves memory"),
    UncheckedQuestion(codes=("TPU2109",), lack="items", what="whether an image or a video fits into a step"),
    UncheckedQuestion(codes=("TPU2110",), lack="step", what="whether a step can take max_num_seqs requests"),
    UncheckedQuestion(codes=("TPU2111",), lack="blocks", what="whether block_size is large enough"),
    UncheckedQuestion(codes=("TPU2132",), lack="model", what="whether the compiler takes the attention kernel"),
    UncheckedQuestion(codes=("TPU2112",), lack="buckets", what="how many graphs padding_gap adds"),
    UncheckedQuestion(codes=("TPU2116",), lack="memory", what="whether the weights in HF_HOME fit in memory"),
    UncheckedQuestion(codes=("TPU2117",), lack="model", what="whether the weights fit on the boot disk"),
    UncheckedQuestion(codes=("TPU2118",), lack="model", what="whose code runs the model"),
    UncheckedQuestion(codes=("TPU2121",), lack="parts", what="whether the model has the parts that flags are about"),
    UncheckedQuestion(codes=(), lack="task", what="whether the server completes prompts or pools them"),
    UncheckedQuestion(
        codes=("TPU2125",), lack="family", what="whether parsers, templates and limits suit the model's family"
    ),
)


@check_for(
    "TPU2120",
    "Part of the profile could not be checked",
    "Some checks need the model's dimensions or the size of everything in HBM. They can't run for a model outside"
    " the catalog or for settings with an unknown effect on memory. The message names them. If a setting only "
    "adds memory (LoRA adapters, a draft model), the rest is checked as a lower bound. On generations without a "
    "recorded HBM limit (v5p, TPU7x), the nominal HBM is the bound. For a model outside the catalog, set "
    "model.config to its config.json.",
    "serving: {args: {enable_lora: null}}",
)
def unchecked(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = deployment.budget
    if isinstance(budget, HbmBudget) or budget.is_refused:
        return
    lacks = {**_lacks_of_model(deployment, budget), **_lacks_of_engine(deployment, budget)}
    subjects = "; ".join(subject.what for subject in SUBJECTS if lacks[subject.lack])
    if subjects:
        message = f"Not checked, because {budget.because}: {subjects}."
        yield warning(deployment, message, path=_path(deployment, budget), hint=_hint(deployment, budget))


def _lacks_of_model(deployment: Deployment, budget: Unsized) -> Mapping[str, bool]:
    """Return what the deployment has and is not known, as far as its model and its bytes decide it."""
    is_unknown, is_possible = budget.model is None, not budget.is_impossible
    holds_a_request = is_possible and budget.at_least is not None and budget.at_least.holds_a_request
    has_many_chips = deployment.accelerator.devices > 1
    hub_is_in_memory = is_memory(deployment.container, hub_home(deployment.container)) and deployment.mirror is None
    return {
        "bytes": is_possible and budget.at_least is None,
        "added bytes": holds_a_request and not budget.lacks_limit_alone,
        "limit": holds_a_request and budget.lacks_limit_alone,
        "model": is_unknown,
        "parts": is_unknown and has_flag_of_some_models(deployment),
        "task": deployment.task.task is Task.UNKNOWN,
        "family": is_unknown and has_setting_of_a_family(deployment),
        "heads": is_unknown and has_many_chips,
        "shares": is_possible and has_many_chips and not budget.lacks_limit_alone,
        "memory": is_unknown and hub_is_in_memory,
    }


def _lacks_of_engine(deployment: Deployment, budget: Unsized) -> Mapping[str, bool]:
    """Return what the deployment has and is not known, as far as the engine's settings decide it."""
    attributes = deployment.attributes
    lacks_engine = budget.engine is None
    lacks_one = budget.model is None or lacks_engine
    is_fp8 = str(attributes.get("serving.kv_cache_dtype", "")).startswith("fp8")
    sizes = [setting(deployment, f"serving.{name}") for name in ("max_num_batched_tokens", "max_num_seqs")]
    has_one_size = sizes.count(None) == 1
    return {
        "length": lacks_one and "serving.max_model_len" in attributes,
        "layout": is_fp8 and (lacks_one or not budget.has_layout),
        "items": lacks_one and argument(deployment, "disable-chunked-mm-input")[1] is True,
        "step": lacks_engine and has_one_size,
        "blocks": lacks_engine and "serving.block_size" in attributes,
        "buckets": lacks_engine and bool(attributes.get("serving.padding_gap")),
    }


def _path(deployment: Deployment, budget: Unsized) -> str:
    """Return where the profile writes what cannot be sized."""
    for name in budget.settings:
        path = argument(deployment, name)[0] or f"serving.env.{name}"
        if name in deployment.attributes:
            return name
        if path in deployment.attributes:
            return path
    return "model.config" if "model.config" in deployment.attributes else "model.id"


def _hint(deployment: Deployment, budget: Unsized) -> str:
    if budget.model is None and not budget.settings:
        closest = families.closest_model(deployment.model_id)
        if closest not in (None, deployment.model_id):
            return f"Did you mean `{closest}`? The hub's ids are case-sensitive."
        if "model.config" not in deployment.attributes:
            return "Name the model's config.json in model.config: a family that the catalogue knows is then checked."
        return (
            "The catalogue does not know the family of model.config. Start with a small max_model_len and leave room."
        )
    measured = "once the server runs, `tpudeploy verify` shows how large its KV cache really is."
    return f"Leave it room; {measured}" if budget.at_least is not None else f"{measured[0].upper()}{measured[1:]}"
