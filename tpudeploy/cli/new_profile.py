"""A first profile from facts: what the catalogue knows of the model and the slice, and what its sizing says fits.

It has no measurements: this model was not measured on this slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.catalog.support import model_support
from tpudeploy.catalog.tasks import resolve_task
from tpudeploy.config.parse import parse
from tpudeploy.config.reader import Remembered
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, AcceleratorType
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import ProfileInvalid
from tpudeploy.domain.model import Implementation, LanguageModel
from tpudeploy.domain.task import TASKS, Task
from tpudeploy.planning.resolve import resolve_without_script
from tpudeploy.sizing.checks import check
from tpudeploy.sizing.checks.family import parsers_of

_LONGEST, _SHORTEST = 32_768, 2_048
_LONGEST_NAME = 40
STEP = 4_096  # tokens: more than the largest image or video of a known model
_FILE = "profile.yaml"
_END = (
    "  end: 24h                           # after it first serves; without this line, only `destroy` ends it\n"
    "  # idle: 2h                         # ends it after that time without a request\n"
    "  # hours: Mon-Fri 08:00-19:00 Europe/Berlin   # deleted at night, started by an `apply` in the morning\n"
)


# Of `placement.max_search_price_per_hour`, in each profile that is written.
SEARCH_COMMENT = "USD for all requests at once, about four slices"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipSplit:
    """What the answers leave open: how the chips are split, the longest text, and whether vLLM's own class loads it."""

    tensor_parallel: int
    data_parallel: int
    max_model_len: int
    is_by_vllm: bool = False


def new_profile(model_id: str, type_name: str, zones: tuple[str, ...], api_key: str, *, name: str = "") -> str:
    """Return the text of a profile for a model and a slice: the first choice without an error, or else the first."""
    kind = catalog.accelerator_type(type_name)
    assert kind is not None  # the answer was checked
    model = families.known_model(model_id)
    choices = [*_choices(model, kind)]
    if model is not None and model.implementation is Implementation.JAX:
        choices += [replace(choice, is_by_vllm=True) for choice in choices]
    texts = [_text(model_id, kind, zones, api_key, choice, name=name) for choice in choices]
    return next((text for text in texts if _has_no_error(text)), texts[0])


def with_limits(text: str) -> str:
    """Return the text of a profile with a limit for its search and an end, unless it has them."""
    return with_end(_with_search_price(text))


def _with_search_price(text: str) -> str:
    if re.search(r"(?m)^  max_(search_price_per_hour|parallel_requests):", text):
        return text
    price = _deployment(text).search_usd_per_hour
    if price is None:
        return text  # no place has a known price
    line = f"  max_search_price_per_hour: {price:<6g}  # {SEARCH_COMMENT}\n"
    return re.sub(r"(?m)^placement:\n(?:  .*\n?)*", lambda match: f"{match[0].rstrip()}\n{line}", text, count=1)


def with_end(text: str) -> str:
    """Return the text of a profile that ends a day after it first serves, unless it says when it ends."""
    if re.search(r"(?m)^  end:", text):
        return text
    if re.search(r"(?m)^lifecycle:\n", text):
        return re.sub(r"(?m)^lifecycle:\n", f"lifecycle:\n{_END}", text, count=1)
    return f"{text.rstrip()}\n\nlifecycle:\n{_END}"


def name_of(model_id: str) -> str:
    """Return a deployment's name for a model: `qwen3-8b` for Qwen/Qwen3-8B."""
    words = re.sub(r"[^a-z0-9]+", "-", model_id.rpartition("/")[2].lower()).strip("-")
    name = words if words[:1].isalpha() else f"m-{words}"
    return name[:_LONGEST_NAME].strip("-")


def _choices(model: LanguageModel | None, kind: AcceleratorType) -> Iterator[ChipSplit]:
    """Yield the choices, best first: chips that share the model before copies of it, then shorter texts."""
    longest = min(_LONGEST, _LONGEST if model is None else model.max_position)
    length = longest
    while length >= min(_SHORTEST, longest):
        ranks = kind.devices
        while ranks >= 1:
            yield ChipSplit(tensor_parallel=ranks, data_parallel=kind.devices // ranks, max_model_len=length)
            # Copies lie on one host; of a slice of several, or an unknown model, all devices share the model.
            ranks = 0 if kind.hosts > 1 or model is None else ranks // 2
        length //= 2


def _has_no_error(text: str) -> bool:
    try:
        return not errors_in(check([_deployment(text)]))
    except ProfileInvalid:
        return False


def _deployment(text: str) -> Deployment:
    profile = parse(_FILE, Remembered(text, beside="", name=_FILE), environment={})
    return resolve_without_script(profile, project="any", config_json=None)


def _text(
    model_id: str, kind: AcceleratorType, zones: tuple[str, ...], api_key: str, choice: ChipSplit, *, name: str
) -> str:
    model, task = families.known_model(model_id), resolve_task(model_id, {}, {}).task
    knowledge = "Its memory is computed, not measured" if model is not None else "The catalogue does not know the model"
    untested = model_support(model_id, kind.generation, release=VLLM_VERSION).sentence
    return "\n".join(
        (
            "# yaml-language-server: $schema=profile.schema.json",
            f"# {model_id} on {kind.name}. {knowledge}: `tpudeploy size` shows what is known.",
            *((f"# {untested}.",) if untested else ()),
            "version: 1",
            f"name: {name or name_of(model_id)}",
            "",
            "model:",
            f"  id: {model_id}",
            "",
            "tpu:",
            f"  type: {kind.name}",
            "",
            "serving:",
            f"  image: vllm/vllm-tpu:v{VLLM_VERSION}       # a release; the first apply pins its digest",
            *_serving(model_id, model, task, choice),
            "",
            "secrets:",
            "  HF_TOKEN: hf-token                 # a secret's name in Secret Manager, never its value",
            f"  VLLM_API_KEY: {api_key}"
            if api_key
            else "  # VLLM_API_KEY: vllm-key           # requires a key on /v1; other paths stay open",
            "",
            "placement:",
            *((f"  zones: [{', '.join(zones)}]",) if zones else ()),
            *((f"  backend: {kind.backends[0].value}",) if DEFAULT_BACKEND not in kind.backends else ()),
            "  provisioning: [flex-start, spot]   # the cheaper first; flex-start is not preempted while it runs",
            "  max_run_duration: 12h              # then Google deletes the machine",
            "  valid_until: 2h                    # a request that waits for longer lapses",
            "",
        )
    )


def _serving(model_id: str, model: LanguageModel | None, task: Task, choice: ChipSplit) -> Iterator[str]:
    if choice.data_parallel > 1:
        yield f"  tensor_parallel_size: {choice.tensor_parallel}"
        yield f"  data_parallel_size: {choice.data_parallel}            # copies of the model, a rank each"
    if choice.is_by_vllm or (model is not None and model.implementation is Implementation.TORCHAX):
        yield "  hbm_utilization: 0.80              # the model runs through torchax, whose programs are larger"
    yield f"  max_model_len: {choice.max_model_len}               # prompt and output together"
    yield f"  max_num_batched_tokens: {STEP}"
    yield "  shm_size: 10gb"
    if choice.is_by_vllm:
        if families.quantization_of(model_id) == "awq":
            yield "  dtype: bfloat16                    # the kernels for AWQ compute in nothing else"
        yield "  env:"
        yield "    MODEL_IMPL_TYPE: vllm            # vLLM's class loads it; this release's own does not"
    arguments = list(_arguments(model_id, model, task))
    if arguments:
        yield "  args:"
        yield from (f"    {argument}" for argument in arguments)


def _arguments(model_id: str, model: LanguageModel | None, task: Task) -> Iterator[str]:
    if task not in (Task.GENERATE, Task.UNKNOWN):
        yield f"runner: pooling                  # it serves {TASKS[task].serves}"
        return
    if model is None:
        return
    if model.is_multimodal:
        yield "disable_chunked_mm_input: true   # multimodal models need it on TPU"
        yield "limit_mm_per_prompt: {image: 4}"
    parsers = parsers_of(model_id, model.architecture)
    is_tuned = any(mark in model_id.lower() for mark in ("-it", "instruct", "chat", "thinking", "qwen3-"))
    if parsers is None or not is_tuned:
        return  # a base model calls no tools
    if parsers.tools:
        yield "enable_auto_tool_choice: true"
        yield f"tool_call_parser: {'qwen3_coder' if 'coder' in model_id.lower() else parsers.tools[0]}"
    if parsers.reasoning and "instruct" not in model_id.lower():
        yield f"reasoning_parser: {parsers.reasoning[0]}"
