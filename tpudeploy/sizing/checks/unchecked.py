"""What could not be checked, and why: a check that lacks a figure is named, never left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tpudeploy.catalog import families
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.domain.frozen import frozen
from tpudeploy.node.mounts import hub_home, is_memory
from tpudeploy.sizing.checks import other_models
from tpudeploy.sizing.finding import argument, setting, warning

CODE = "TPU2120"
EXPLANATION = Explanation(
    "Part of the profile could not be checked",
    "Some checks need the model's dimensions, others the bytes of everything that lies in HBM. For a model that the "
    "catalogue does not know, or settings whose effect on memory is not known, these checks cannot run, and the "
    "message names them. Where a setting only adds to the memory (LoRA adapters, a draft model), the rest is checked "
    "as a lower bound: what does not fit without it does not fit with it. A config.json in model.config describes a "
    "model that the catalogue does not know.",
    "serving: {args: {enable_lora: null}}",
)


@frozen
class Subject:
    """What some checks look at. `is_open`: whether this deployment has that, and it could not be looked at."""

    codes: tuple[str, ...]
    what: str
    is_open: Callable[[Deployment, Unsized], bool]


def _lacks_bytes(_: Deployment, of: Unsized) -> bool:
    return not of.is_impossible and of.at_least is None


def _has_bound(_: Deployment, of: Unsized) -> bool:
    return not of.is_impossible and of.at_least is not None and of.at_least.holds_a_request


def _lacks_model(_: Deployment, of: Unsized) -> bool:
    return of.model is None


def _lacks_parts(deployment: Deployment, of: Unsized) -> bool:
    return of.model is None and other_models.is_asked(deployment)


def _lacks_heads(deployment: Deployment, of: Unsized) -> bool:
    return of.model is None and deployment.accelerator.chips > 1


def _lacks_length(deployment: Deployment, of: Unsized) -> bool:
    return "serving.max_model_len" in deployment.attributes and (of.model is None or of.engine is None)


def _lacks_shares(deployment: Deployment, of: Unsized) -> bool:
    return deployment.accelerator.chips > 1 and not of.is_impossible


def _lacks_layout(deployment: Deployment, of: Unsized) -> bool:
    is_fp8 = str(deployment.attributes.get("serving.kv_cache_dtype", "")).startswith("fp8")
    return is_fp8 and (of.model is None or of.engine is None or not of.has_layout)


def _lacks_items(deployment: Deployment, of: Unsized) -> bool:
    return argument(deployment, "disable-chunked-mm-input")[1] is True and (of.model is None or of.engine is None)


def _lacks_step(deployment: Deployment, of: Unsized) -> bool:
    names = ("max_num_batched_tokens", "max_num_seqs")
    written = [setting(deployment, f"serving.{name}") for name in names]
    return of.engine is None and any(value is not None for value in written) and None in written


def _lacks_blocks(deployment: Deployment, of: Unsized) -> bool:
    return of.engine is None and "serving.block_size" in deployment.attributes


def _lacks_buckets(deployment: Deployment, of: Unsized) -> bool:
    return of.engine is None and bool(deployment.attributes.get("serving.padding_gap"))


def _lacks_memory(deployment: Deployment, of: Unsized) -> bool:
    is_kept_there = is_memory(deployment.container, hub_home(deployment.container))
    return of.model is None and is_kept_there and deployment.mirror is None


SUBJECTS = (
    Subject(
        codes=("TPU2101", "TPU2102", "TPU2103"),
        what="whether the weights and one request of max_model_len fit in HBM",
        is_open=_lacks_bytes,
    ),
    Subject(
        codes=("TPU2101", "TPU2102", "TPU2103"),
        what="whether the weights and one request fit in HBM together with that (without it, they do)",
        is_open=_has_bound,
    ),
    Subject(codes=("TPU2105",), what="whether compiled programs have room", is_open=_lacks_bytes),
    Subject(codes=("TPU2104",), what="whether the model allows that max_model_len", is_open=_lacks_length),
    Subject(codes=("TPU2106",), what="whether the chips can share the model's heads", is_open=_lacks_heads),
    Subject(codes=("TPU2107",), what="whether the chips share the KV cache or copy it", is_open=_lacks_shares),
    Subject(codes=("TPU2108",), what="whether an fp8 KV cache saves memory", is_open=_lacks_layout),
    Subject(codes=("TPU2109",), what="whether an image or a video fits into a step", is_open=_lacks_items),
    Subject(codes=("TPU2110",), what="whether a step holds max_num_seqs requests", is_open=_lacks_step),
    Subject(codes=("TPU2111",), what="whether block_size is large enough", is_open=_lacks_blocks),
    Subject(codes=("TPU2112",), what="how many graphs padding_gap adds", is_open=_lacks_buckets),
    Subject(codes=("TPU2116",), what="whether memory holds the weights that HF_HOME puts there", is_open=_lacks_memory),
    Subject(codes=("TPU2117",), what="whether the boot disk holds the weights", is_open=_lacks_model),
    Subject(codes=("TPU2118",), what="whose code runs the model", is_open=_lacks_model),
    Subject(codes=("TPU2121",), what="whether the model has the parts that flags are about", is_open=_lacks_parts),
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    of = deployment.budget
    if isinstance(of, HbmBudget):
        return
    open_subjects = [subject.what for subject in SUBJECTS if subject.is_open(deployment, of)]
    if open_subjects:
        message = f"Not checked, because {of.because}: {'; '.join(open_subjects)}."
        yield warning(deployment, CODE, message, path=_path(deployment, of), hint=_hint(deployment, of))


def _path(deployment: Deployment, of: Unsized) -> str:
    """Return where the profile writes what cannot be sized."""
    for name in of.settings:
        written = argument(deployment, name)[0] or f"serving.env.{name}"
        if written in deployment.attributes:
            return written
    return "model.config" if "model.config" in deployment.attributes else "model.id"


def _hint(deployment: Deployment, of: Unsized) -> str:
    if of.model is None and not of.settings:
        closest = families.closest_model(deployment.model_id)
        if closest not in (None, deployment.model_id):
            return f"Did you mean `{closest}`? The hub's ids are case-sensitive."
        return "Name the model's config.json in model.config: a family that the catalogue knows is then checked."
    if of.at_least is not None:
        return "Leave it room; once the server runs, `tpudeploy verify` shows how large its KV cache really is."
    return "Once the server runs, `tpudeploy verify` shows how large its KV cache really is."
