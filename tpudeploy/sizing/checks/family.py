"""Checks of a model's id, its quantization, and settings that are for models of other families."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tpudeploy.catalog import families, quantization, releases
from tpudeploy.catalog.families import answers
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.budget import Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.model import Implementation
from tpudeploy.domain.task import TASKS
from tpudeploy.sizing.checks.check import argument, check_for, error, model_of, warning

_TAKEN = "fp8, awq and compressed-tensors (int8, fp8, int4)"


@check_for(
    "TPU2122",
    "A quantization that the TPU platform refuses",
    "vLLM's TPU platform runs awq, fp8, compressed-tensors and some FP4 formats. For others, such as gptq and "
    'bitsandbytes, the start ends with "quantization is currently not supported". The method comes from the '
    "checkpoint's config, from its name, or from args.quantization.",
    "model: {id: Qwen/Qwen3-8B-FP8}",
)
def refused_quantization(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "quantization")
    method = (str(value) if value else families.quantization_of(deployment.model_id)).lower()
    # vLLM turns a method's name into the platform's: awq into auto_awq, mxfp4 into gpt_oss_mxfp4.
    listed = releases.registry(deployment.engine.release)["quantizations"]
    if method in ("", "none") or any(method in name for name in listed):
        return
    subject = f"--quantization {value}" if value else f"{deployment.model_id} is quantized with {method}, which"
    message = f"{subject} does not run on TPU: the server would not start."
    yield error(
        deployment, message, path=path or "model.id", hint=f"Name a checkpoint in bfloat16, or in one of {_TAKEN}."
    )


@check_for(
    "TPU2123",
    "A model id that differs from a known one in letter case alone",
    "Some hub clients and mirrors treat ids as case-sensitive. A second spelling is also cached twice. tpudeploy "
    "sizes the model as the known one.",
    "model: {id: google/gemma-4-E2B-it}",
)
def other_case(deployment: Deployment) -> Iterator[Diagnostic]:
    closest = families.closest_model(deployment.model_id)
    if model_of(deployment) is not None and closest not in (None, deployment.model_id):
        hint = f"Did you mean `{closest}`? The hub's ids are case-sensitive."
        message = f"{deployment.model_id} is written otherwise than on the hub."
        yield warning(deployment, message, path="model.id", hint=hint)


# Read from the ids and the architectures of the hub's well-known encoder-decoders.
_ENCODER_DECODER = re.compile(r"(^|[-/])(distil-)?(whisper|(flan-|m|by)?t5|bart|pegasus)([-.]|$)")


@check_for(
    "TPU2126",
    "A model with an encoder and a decoder",
    "tpu_inference has no KV cache for cross-attention (0.32.0 runner/kv_cache_manager.py): the start of an "
    "encoder-decoder such as Whisper or T5 ends with NotImplementedError, so TPUs serve no transcriptions.",
    "model: {id: google/gemma-4-E2B-it}",
)
def encoder_decoder(deployment: Deployment) -> Iterator[Diagnostic]:
    if model_of(deployment) is None and _ENCODER_DECODER.search(deployment.model_id.lower()):
        message = f"{deployment.model_id} has an encoder and a decoder, which the engine does not run on TPU."
        yield error(deployment, message, path="model.id", hint="Serve it on another platform.")


@check_for(
    "TPU2131",
    "A model that the engine refuses",
    "The engine's own loader or KV cache code refused this model. The message quotes it, or names what the model "
    "class lacks. If other settings work, the hint names them.",
    "model: {id: google/gemma-4-E2B-it}",
)
def refused_model(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield nothing where a check of a quantization or of a kind of model says it in its own words."""
    budget = deployment.budget
    if not isinstance(budget, Unsized) or not budget.is_refused:
        return
    if any(True for check in (refused_quantization, encoder_decoder) for _ in check.find(deployment)):
        return
    words = budget.because.partition(": ")[2]
    base = families.base_of(deployment.model_id) or deployment.model_id
    ways = [_as_profile(answer.settings) for answer in answers.answers(base) if answer.model]
    way = ways[-1] if ways else _by_vllm(deployment)
    hint = f"The engine takes it with {way}." if way else "Name another model, or an image of another release."
    message = f"The engine refuses {deployment.model_id}: {words}."
    yield error(deployment, message, path="model.id", hint=hint)


def _by_vllm(deployment: Deployment) -> str:
    """Return the settings with which vLLM's own class loads a quantized checkpoint that the plug-in's does not."""
    model, fields = families.known_model(deployment.model_id), families.fields_of(deployment.model_id)
    release = deployment.engine.release
    if model is None or not quantization.refusal(fields, model, Implementation.JAX, release):
        return ""
    if quantization.refusal(fields, model, Implementation.TORCHAX, release):
        return ""
    settings = {"MODEL_IMPL_TYPE": Implementation.TORCHAX.value}
    if quantization.method_of(fields.get("quantization_config")) == "auto_awq":
        settings["dtype"] = "bfloat16"  # its kernels compute in nothing else
    return _as_profile(settings)


_DP_ATTENTION = "serving.args.additional_config.sharding.sharding_strategy.enable_dp_attention"


def _as_profile(settings: Mapping[str, object]) -> str:
    keys = {"dtype": "serving.dtype", "runner": "serving.args.runner", "enable_dp_attention": _DP_ATTENTION}
    return " and ".join(f"{keys.get(name, f'serving.env.{name}')}: {value}" for name, value in settings.items())


@check_for(
    "TPU2127",
    "A router that does not pass on the server's requests",
    "smg passes on completions and embeddings. It answers 404 to /score, /classify and /pooling. It turns vLLM's "
    "reply from /rerank into a 500. So clients couldn't use such a server. HAProxy and Envoy pass on any path.",
    "router: {kind: haproxy}",
)
def router_without_route(deployment: Deployment) -> Iterator[Diagnostic]:
    router, task = deployment.router, deployment.task.task
    if router is not None and task not in ROUTERS[router.kind].tasks:
        message = f"{router.kind} does not pass on requests for {TASKS[task].serves}."
        others = " or ".join(kind.value for kind, facts in ROUTERS.items() if task in facts.tasks)
        yield error(deployment, message, path="router.kind", hint=f"Write router.kind: {others}.")


_ROLES: Mapping[str, str] = {"kv_producer": "prefill", "kv_consumer": "decode"}


@check_for(
    "TPU2124",
    "One half of a prefill/decode pair",
    "With kv_role kv_producer or kv_consumer, a server is one half of a pair: a proxy sends each request to "
    "prefill first and then to decode. A profile describes one kind of server and its router sends each request "
    "to one replica, so tpudeploy can't deploy the pair. Deploy each half on its own, behind your own proxy.",
    "serving: {args: {kv_transfer_config: null}}",
)
def half_a_pair(deployment: Deployment) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "kv-transfer-config")
    role = str(value.get("kv_role", "")) if isinstance(value, dict) else ""
    half = _ROLES.get(role)
    if half is not None:
        message = (
            f"kv_role {role} makes this server the {half} half of a pair. tpudeploy cannot express the pair: it "
            "deploys this half as a server of its own, without the other half and without the proxy between them."
        )
        hint = "Deploy each half from its own profile and run a prefill/decode proxy in front, or leave it out."
        yield warning(deployment, message, path=path, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsers:
    """The parsers and the word in chat templates of one family, by the beginning of its architectures."""

    tools: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()


# vLLM 0.32.0 docs/features/tool_calling.md and reasoning_outputs.md, by the models that each parser is for.
FAMILY_PARSERS: Mapping[str, Parsers] = {
    "Gemma4": Parsers(tools=("gemma4",), reasoning=("gemma4",), templates=("gemma4",)),
    "Gemma3": Parsers(tools=("pythonic", "functiongemma"), templates=("gemma3", "functiongemma")),
    "Llama": Parsers(tools=("llama3_json", "pythonic"), templates=("llama3",)),
    "Mistral": Parsers(tools=("mistral",), reasoning=("mistral",), templates=("mistral",)),
    "Mixtral": Parsers(tools=("mistral",), reasoning=("mistral",), templates=("mistral",)),
    "Qwen2": Parsers(tools=("hermes",), templates=("hermes",)),
    "Qwen3": Parsers(
        tools=("hermes", "qwen3_coder", "qwen3_xml", "qwen3_json"),
        reasoning=("qwen3",),
        templates=("hermes", "qwen3coder"),
    ),
}
# Fine-tunes keep the architecture of their base, and bring the formats of their own training.
_OF_FINE_TUNES: Mapping[str, Parsers] = {
    "hermes": Parsers(tools=("hermes",), templates=("hermes",)),
    "deepseek": Parsers(reasoning=("deepseek_r1",)),
    "qwq": Parsers(reasoning=("qwen3", "deepseek_r1")),
    "xlam": Parsers(tools=("xlam",), templates=("xlam",)),
}


def parsers_of(model_id: str, architecture: str) -> Parsers | None:
    """Return the parsers of a model, or None where its family is not known."""
    rows = [row for start, row in FAMILY_PARSERS.items() if architecture.startswith(start)]
    if not rows:
        return None
    return _together([*rows, *(row for word, row in _OF_FINE_TUNES.items() if word in model_id.lower())])


def _together(rows: Iterable[Parsers]) -> Parsers:
    each = tuple(rows)
    return Parsers(
        tools=tuple(name for row in each for name in row.tools),
        reasoning=tuple(name for row in each for name in row.reasoning),
        templates=tuple(word for row in each for word in row.templates),
    )


_ALL = _together((*FAMILY_PARSERS.values(), *_OF_FINE_TUNES.values()))


_OF_A_FAMILY = ("tool-call-parser", "reasoning-parser", "chat-template", "limit-mm-per-prompt")
_TEMPLATE = "tool_chat_template_"


@check_for(
    "TPU2125",
    "A setting of another model family",
    "Tool and reasoning parsers and chat templates are written for one model family. With another family the "
    "server starts, but tool calls or thoughts come back as plain text. Image and video limits have no effect on "
    "text-only models.",
    "serving: {args: {tool_call_parser: gemma4, reasoning_parser: gemma4}}",
)
def other_family(deployment: Deployment) -> Iterator[Diagnostic]:
    """Yield settings that are known to be for other families; nothing for a model or a parser that is not known."""
    model = model_of(deployment) or families.known_model(deployment.model_id)
    own = None if model is None else parsers_of(deployment.model_id, model.architecture)
    if model is None or own is None:
        return
    yield from _parser_of_others(deployment, "tool-call-parser", own.tools, _ALL.tools)
    yield from _parser_of_others(deployment, "reasoning-parser", own.reasoning, _ALL.reasoning)
    yield from _template_of_others(deployment, own)
    path, value = argument(deployment, "limit-mm-per-prompt")
    if value and not model.is_multimodal:
        message = f"--limit-mm-per-prompt has no effect: {deployment.model_id} takes text alone."
        yield warning(deployment, message, path=path, hint="Leave it out.")


def _parser_of_others(
    deployment: Deployment, flag_name: str, own_names: tuple[str, ...], all_names: tuple[str, ...]
) -> Iterator[Diagnostic]:
    path, value = argument(deployment, flag_name)
    if isinstance(value, str) and value in all_names and value not in own_names:
        hint = f"Write {flag_name.replace('-', '_')}: {own_names[0]}." if own_names else "Leave it out."
        message = f"--{flag_name} {value} is for models of another family than {deployment.model_id}."
        yield warning(deployment, message, path=path, hint=hint)


def _template_of_others(deployment: Deployment, own: Parsers) -> Iterator[Diagnostic]:
    path, value = argument(deployment, "chat-template")
    _, is_template, word = str(value).rpartition(_TEMPLATE)
    if is_template and word.startswith(_ALL.templates) and not word.startswith(own.templates):
        message = f"The chat template {value} is for models of another family than {deployment.model_id}."
        yield warning(deployment, message, path=path, hint="Leave it out: the checkpoint has its own template.")


def has_setting_of_a_family(deployment: Deployment) -> bool:
    """Return whether a setting is written that is for some families alone, and the model's family is not known."""
    if families.known_model(deployment.model_id) is not None:
        return False
    return any(argument(deployment, name)[1] is not None for name in _OF_A_FAMILY)
