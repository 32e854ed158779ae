"""Check for flags that vLLM refuses beside others, or on TPU: one row per rule, each from a check of vLLM 0.32.0.

For an image with another version of vLLM, these are warnings, as everything from the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tpudeploy.catalog import families, flags, releases, values, variables
from tpudeploy.config import codes, engine_values
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules import chips
from tpudeploy.config.rules.server import Server, Setting
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.domain.deployment import Json

_IDLE: Path = ("lifecycle", "idle")


def _together(server: Server, flag: Setting, message: str, hint: str, also: Path = ()) -> Violation:
    text = f"{message}: the server would not start"
    doubtful = server.is_doubtful
    return Violation(codes.FLAGS_TOGETHER, flag.path, text, hint, also=also, is_key=True, is_warning=doubtful)


class _Needs(NamedTuple):
    """A flag that vLLM refuses without another one: when, which one, and what to write.

    `values` are those that the other flag must have; if empty, any value that is not false.
    """

    is_set: Callable[[Json], bool]
    other: str
    instead: str
    values: tuple[Json, ...] = ()


def _is_on(value: Json) -> bool:
    return value is True


def _is_written(value: Json) -> bool:
    return value not in (None, "", "None")


def _is_not(*defaults: Json) -> Callable[[Json], bool]:
    return lambda value: _is_written(value) and value not in defaults


_NUMA = "numa_bind: true binds workers to them; or leave both out"
# launchers/cli_args.py, config/observability.py, config/vllm.py, config/multimodal.py,
# config/parallel.py, config/mamba.py, engine/arg_utils.py (fault tolerance).
_NEEDS: Mapping[str, _Needs] = {
    "enable-auto-tool-choice": _Needs(
        _is_on, "tool-call-parser", "add the parser of the model's family, e.g. tool_call_parser: gemma4"
    ),
    "enable-log-outputs": _Needs(_is_on, "enable-log-requests", "enable_log_requests: true"),
    "collect-detailed-traces": _Needs(
        bool, "otlp-traces-endpoint", "otlp_traces_endpoint: the address of your collector"
    ),
    "mamba-ssu-algorithm": _Needs(_is_written, "mamba-backend", "leave it out", ("flashinfer",)),
    "mm-encoder-fp8-scale-path": _Needs(
        _is_written, "mm-encoder-attn-dtype", "mm_encoder_attn_dtype: fp8, or leave it out", ("fp8",)
    ),
    "mm-encoder-fp8-scale-save-path": _Needs(
        _is_written, "mm-encoder-attn-dtype", "mm_encoder_attn_dtype: fp8, or leave it out", ("fp8",)
    ),
    "mm-shm-cache-max-object-size-mb": _Needs(
        _is_not(128, "128"), "mm-processor-cache-type", "mm_processor_cache_type: shm, or leave it out", ("shm",)
    ),
    "numa-bind-cpus": _Needs(_is_written, "numa-bind", _NUMA),
    "numa-bind-nodes": _Needs(_is_written, "numa-bind", _NUMA),
    "offload-backend": _Needs(
        lambda value: value == "prefetch", "offload-group-size", "offload_group_size: the layers of a group, e.g. 8"
    ),
    "ray-workers-use-nsight": _Needs(
        _is_on, "distributed-executor-backend", "leave it out: a slice of one host runs without Ray", ("ray",)
    ),
}


def needs(server: Server) -> Iterator[Violation]:
    """Report a flag without another one that it needs."""
    settings = server.settings
    for name, row in _NEEDS.items():
        flag, other = settings.get(name), settings.get(row.other)
        if flag is None or not row.is_set(flag.value):
            continue
        beside = None if other is None else other.value
        if not (beside in row.values if row.values else beside):
            value = f" {row.values[0]}" if row.values else ""
            yield _together(server, flag, f"--{name} needs --{row.other}{value}", row.instead)


class _NotOnTpu(NamedTuple):
    """Values that vLLM refuses on its TPU platform, why, and what to do instead.

    They are `values`, or all values except `only`; if both are empty, all values except false.
    """

    because: str
    instead: str = "leave it out"
    values: tuple[Json, ...] = ()
    only: tuple[Json, ...] = ()


_CUDA = "it is for NVIDIA's CUDA"
# Checkpoints quantised so may be converted to one of the supported ones: config/model.py, _verify_quantization.
_OF_CHECKPOINTS = ("awq", "awq_marlin", "modelopt", "mxfp4")
_MEMORY_POOL = "it needs CUDA's or ROCm's allocator of device memory"
_RUNNER = "it needs vLLM's second model runner, and TPU has its own"
_OVERLAP = "overlapping batches needs an all-to-all backend of CUDA"
_BALANCING = "vLLM balances experts only on CUDA, ROCm and XPU"
# platforms/interface.py, config/parallel.py _validate_parallel_config, config/mamba.py, config/vllm.py,
# engine/arg_utils.py create_engine_config.
_NOT_ON_TPU: Mapping[str, _NotOnTpu] = {
    "enable-batch-sharded-sampling": _NotOnTpu(_RUNNER),
    "enable-cumem-allocator": _NotOnTpu(_MEMORY_POOL),
    "enable-dbo": _NotOnTpu(_OVERLAP),
    "enable-elastic-ep": _NotOnTpu(_BALANCING),
    "enable-eplb": _NotOnTpu(_BALANCING),
    "enable-fault-tolerance": _NotOnTpu("it needs a load balancer outside the server, and a slice has one server"),
    "enable-mamba-cache-stochastic-rounding": _NotOnTpu(_CUDA),
    "enable-sleep-mode": _NotOnTpu(_MEMORY_POOL),
    "enable-trace-replay": _NotOnTpu(_RUNNER),
    "engram-config": _NotOnTpu("no model with Engram layers runs there"),
    "kda-prefill-backend": _NotOnTpu(
        "these kernels are for CUDA and ROCm", "auto, or leave it out", ("flashkda", "fused")
    ),
    "moe-backend": _NotOnTpu("it is a kernel of CUDA", values=engine_values.MOE_OF_CUDA),
    "return-sampling-mask": _NotOnTpu(_RUNNER),
    "ubatch-size": _NotOnTpu(_OVERLAP, only=(0, 1, "0", "1", "none", "")),
    "watermark-config": _NotOnTpu(_RUNNER),
}


def on_tpu(server: Server) -> Iterator[Violation]:
    """Report a flag that vLLM refuses on TPU, regardless of other flags."""
    settings, version = server.settings, server.release
    for name, row in (*_NOT_ON_TPU.items(), ("quantization", _quantization(version))):
        flag = settings.get(name)
        if flag is not None and _is_refused(flag, row, version):
            value = f" {flag.value}" if row.values or row.only else ""
            message = f"--{name}{value} does not work on TPU: {row.because}"
            is_doubtful = server.is_doubtful
            yield Violation(codes.FLAG_NOT_ON_TPU, flag.path, message, row.instead, is_key=True, is_warning=is_doubtful)


def _quantization(version: str) -> _NotOnTpu:
    """Return the row of the methods that the release's plug-in supports; see catalog/releases."""
    names = releases.registry(version)["quantizations"]  # "unquantized" among them, which names no method
    methods = ", ".join(method for method in names if method != "unquantized")
    return _NotOnTpu("TPU has no kernels for it", f"TPU has {methods}", only=(*names, *_OF_CHECKPOINTS, "none", ""))


def _is_refused(flag: Setting, row: _NotOnTpu, version: str) -> bool:
    word = flag.value.lower() if isinstance(flag.value, str) else flag.value
    if row.values:
        return word in row.values
    if row.only:
        # `args` and `engine_values` report a value that vLLM has on no hardware.
        return word not in row.only and _is_valid(str(flag.path[-1]), flag.value, version)
    return word not in (None, False, "", "none")


class _AtMost(NamedTuple):
    """A number that vLLM refuses above another flag's; `default` is that flag's default, if fixed."""

    other: str
    default: float | None = None


# config/parallel.py, config/scheduler.py, config/offload.py.
_AT_MOST: Mapping[str, _AtMost] = {
    "data-parallel-size-local": _AtMost("data-parallel-size", 1),
    "long-prefill-token-threshold": _AtMost("max-model-len"),
    "max-num-active-seqs": _AtMost("max-num-seqs", 256),
    "offload-num-in-group": _AtMost("offload-group-size"),
}


def at_most(server: Server) -> Iterator[Violation]:
    """Report a number above that of another flag."""
    settings = server.settings
    for name, row in _AT_MOST.items():
        flag, other = settings.get(name), settings.get(row.other)
        most = _default_of(server, row) if other is None or other.value == "auto" else other.number
        if flag is not None and flag.number is not None and most is not None and flag.number > most > 0:
            message = f"--{name} {flag.value} is above --{row.other}, which is {most:g}"
            yield _together(server, flag, message, f"write at most {most:g}, or leave it out")


def _default_of(server: Server, row: _AtMost) -> float | None:
    """Return what the other flag is if it is not set. Without max_model_len, the model's own length counts."""
    if row.other != "max-model-len":
        return row.default

    model = families.known_model(server.profile.model.id)
    return None if model is None else model.max_position


class _Without(NamedTuple):
    """Two flags that vLLM refuses together: when each of them counts as set, and what to do."""

    is_set: Callable[[Json], bool]
    other: str
    other_is_set: Callable[[Json], bool]
    instead: str


# launchers/cli_args.py validate_parsed_serve_args; tpu_inference 0.32.0 layers/common/sharding.py validate.
_WITHOUT: tuple[tuple[str, _Without], ...] = (
    (
        "enable-per-request-metrics",
        _Without(_is_on, "disable-log-stats", _is_on, "leave one of them out: statistics make the metrics"),
    ),
    (
        "enable-lora",
        _Without(
            _is_on,
            "data-parallel-size",
            lambda value: isinstance(value, int) and value > 1,
            "data_parallel_size: 1, and replicas for more copies",
        ),
    ),
)


def without(server: Server) -> Iterator[Violation]:
    """Report two flags that vLLM refuses together."""
    for name, row in _WITHOUT:
        flag, other = server.settings.get(name), server.settings.get(row.other)
        if flag is not None and other is not None and row.is_set(flag.value) and row.other_is_set(other.value):
            beside = f"--{row.other}" if other.value is True else f"--{row.other} {other.value}"
            yield _together(server, flag, f"--{name} cannot be combined with {beside}", row.instead, also=other.path)


def idle_with_statistics(server: Server) -> Iterator[Violation]:
    """Check that the engine of a deployment with an idle limit counts its requests."""
    flag = server.settings.get("disable-log-stats")
    if flag is not None and flag.value is True and is_set(server.profile, _IDLE):
        message = "With --disable-log-stats the engine counts no requests: it would never be idle (lifecycle.idle)"
        hint = "remove it, or remove lifecycle.idle and write lifecycle.end"
        yield Violation(codes.NEVER_IDLE, flag.path, message, hint, also=_IDLE, is_key=True)


def continue_decode(server: Server) -> Iterator[Violation]:
    """Check that several steps at once are for one stage, and for completions (registry in catalog/releases)."""
    flag, fields = _additional(server)
    if flag is None or fields.get("enable_continue_decode") is not True:
        return
    stages = server.settings.get("pipeline-parallel-size")
    if stages is not None and (stages.number or 1) > 1:
        message = f"enable_continue_decode cannot be combined with --pipeline-parallel-size {stages.value}"
        yield _together(server, flag, message, "leave it out", also=stages.path)
    elif server.argument("runner") == "pooling":
        yield _together(server, flag, "enable_continue_decode cannot be combined with --runner pooling", "leave it out")


def attention_ranks(server: Server) -> Iterator[Violation]:
    """Check that ranks that share attention are in one process (registry in catalog/releases)."""
    flag, fields = _additional(server)
    sharding = engine_values.mapping(fields.get("sharding")) or {}
    strategy = engine_values.mapping(sharding.get("sharding_strategy")) or {}
    if flag is None or strategy.get("enable_dp_attention") is not True:
        return
    ranks = server.settings.get("data-parallel-size")
    is_parted = server.profile.serving.env.get("TPU_MULTIPROCESS_DP", "").lower() in ("1", "true")
    if is_parted and ranks is not None and (ranks.number or 1) > 1:
        message = "enable_dp_attention cannot be combined with TPU_MULTIPROCESS_DP in the environment"
        yield _together(server, flag, message, "leave the variable out: the engine then runs all ranks in one process")


def _additional(server: Server) -> tuple[Setting | None, Mapping[str, Json]]:
    flag = server.settings.get("additional-config")
    return flag, (engine_values.mapping(flag.value) if flag is not None else None) or {}


def sliding_window(server: Server) -> Iterator[Violation]:
    """Check that a window may be disabled: vLLM sets it to None, and the configuration of Gemma 4 needs a number."""
    flag = server.settings.get("disable-sliding-window")
    if flag is None or flag.value is not True:
        return

    model = families.known_model(server.profile.model.id)
    if model is not None and model.architecture.startswith("Gemma4"):
        yield _together(server, flag, "--disable-sliding-window cannot be combined with Gemma 4", "leave it out")


def context_parallel(server: Server) -> Iterator[Violation]:
    """Check that decode context parallelism divides the ranks of tensor parallelism (config/parallel.py)."""
    parts = server.settings.get("decode-context-parallel-size")
    if parts is None or parts.number is None or parts.number <= 1:
        return
    ranks = chips.tensor_parallel(server)
    if ranks is not None and ranks % parts.number:
        message = f"--decode-context-parallel-size {parts.value} does not divide tensor_parallel_size {ranks}"
        yield _together(server, parts, message, "leave it out, or write a divisor")


def shared_tensors(server: Server) -> Iterator[Violation]:
    """Check that tensors in torch's shared memory have one worker (config/vllm.py, _verify_mm_tensor_ipc)."""
    flag = server.settings.get("mm-tensor-ipc")
    if flag is None or flag.value != "torch_shm":
        return
    ranks = chips.ranks(server)
    if ranks > 1:
        message = f"--mm-tensor-ipc torch_shm cannot be combined with {ranks} ranks"
        yield _together(server, flag, message, "mm_tensor_ipc: direct_rpc, or leave it out")
    elif server.profile.serving.env.get("VLLM_WORKER_MULTIPROC_METHOD") != "spawn":
        message = "--mm-tensor-ipc torch_shm needs VLLM_WORKER_MULTIPROC_METHOD in the environment"
        yield _together(server, flag, message, "write `env: {VLLM_WORKER_MULTIPROC_METHOD: spawn}`")


def device_ids(server: Server) -> Iterator[Violation]:
    """Check that each device is listed once (engine/arg_utils.py, _resolve_device_ids)."""
    flag = server.settings.get("device-ids")
    names = [name.strip() for name in flag.value.split(",")] if flag and isinstance(flag.value, str) else []
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if flag is not None and twice is not None:
        yield _together(server, flag, f"--device-ids names {twice} twice", f"write {twice} once")


class _NeedsVariable(NamedTuple):
    """A flag that works only with a variable of the engine in `serving.env`."""

    variable: str
    instead: str


# launchers/cli_args.py validate_grpc_port_arg; tpu_inference 0.32.0 layers/common/sharding.py.
_NEEDS_VARIABLE: Mapping[str, _NeedsVariable] = {
    "grpc-port": _NeedsVariable("VLLM_USE_RUST_FRONTEND", "leave it out: clients of the endpoint speak HTTP"),
    "prefill-context-parallel-size": _NeedsVariable("NEW_MODEL_DESIGN", "write `env: {NEW_MODEL_DESIGN: 'True'}`"),
}
# tpu_inference reads these, and vLLM's own list lacks them (vllm/envs.py, validate_environ). The keys that set them:
_NOT_IN_VLLM: Mapping[str, tuple[Path, ...]] = {
    "VLLM_TPU_BUCKET_PADDING_GAP": (("serving", "padding_gap"),),
    "VLLM_TPU_PATCH_MM_EMBEDDINGS": (),
    "VLLM_XLA_CACHE_PATH": (("serving", "xla_cache_path"), ("serving", "xla_cache_bucket")),
}


def environ_validation(server: Server) -> Iterator[Violation]:
    """Report variables that vLLM refuses to start with, because it is told to refuse those that it does not know."""
    flag = server.settings.get("fail-on-environ-validation")
    if flag is None or flag.value is not True:
        return
    env = server.profile.serving.env
    unknown = {name for name in env if name.startswith("VLLM_") and not variables.is_read(name, server.release)}
    unknown |= {
        name for name, keys in _NOT_IN_VLLM.items() if name in env or any(is_set(server.profile, key) for key in keys)
    }
    if unknown:
        message = f"--fail-on-environ-validation refuses {' and '.join(sorted(unknown))}"
        yield _together(server, flag, message, "leave it out: vLLM's list lacks variables that tpu_inference reads")


def needs_variable(server: Server) -> Iterator[Violation]:
    """Report a flag without a variable that it needs."""
    settings = server.settings
    for name, row in _NEEDS_VARIABLE.items():
        flag = settings.get(name)
        is_one = name == "prefill-context-parallel-size" and flag is not None and flag.number == 1
        if flag is None or is_one or not _is_written(flag.value):
            continue
        value = server.profile.serving.env.get(row.variable, "").lower()
        if value not in ("1", "true"):
            yield _together(server, flag, f"--{name} needs {row.variable} in the environment", row.instead)


_SPECULATIVE = "speculative-config"
# The flags that set one field each: engine/arg_utils.py, create_speculative_config.
_FIELD_OF_FLAG: Mapping[str, str] = {
    "spec-method": "method",
    "spec-model": "model",
    "spec-tokens": "num_speculative_tokens",
}


def speculation(server: Server) -> Iterator[Violation]:
    """Check --speculative-config, together with the flags that set a field of it, as one mapping."""
    whole = server.settings.get(_SPECULATIVE)
    parts: dict[str, Setting] = {}
    for name, field in _FIELD_OF_FLAG.items():
        part = server.settings.get(name)
        if part is not None:
            parts[field] = part
    if whole is None and not parts:
        yield from _metrics_without_speculation(server)
    elif whole is None or _is_valid(_SPECULATIVE, whole.value, server.release):
        yield from _speculation_together(server, whole, parts)


def _metrics_without_speculation(server: Server) -> Iterator[Violation]:
    metrics = server.settings.get("per-request-spec-decode-metrics")
    if metrics is not None and metrics.value not in ("none", "", "None"):
        message = f"--per-request-spec-decode-metrics needs --{_SPECULATIVE}"
        yield _together(server, metrics, message, "leave it out, or write speculative_config")


def _speculation_together(server: Server, whole: Setting | None, parts: Mapping[str, Setting]) -> Iterator[Violation]:
    fields: Mapping[str, Json] = (engine_values.mapping(whole.value) if whole is not None else None) or {}
    for name, field in _FIELD_OF_FLAG.items():
        if field in parts and field in fields:
            message = f"the field {field} of --{_SPECULATIVE} already sets --{name}"
            yield _together(server, parts[field], message, "keep one of them")
            return
    first = whole or next(iter(parts.values()))
    name = _SPECULATIVE if whole is not None else "spec-" + str(first.path[-1]).replace("_", "-").partition("-")[2]
    doubtful = server.is_doubtful
    all_fields = {**fields, **{field: part.value for field, part in parts.items()}}
    for message, hint in (*engine_values.speculation(all_fields), *_draft_layers(server, all_fields)):
        text = f"`--{name}` {message}"
        yield Violation(codes.FLAG_VALUE, first.path, text, hint, is_key=True, is_warning=doubtful)


def _draft_layers(server: Server, fields: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield that mtp needs a draft model, where the model is known and has no draft layers of its own.

    vLLM takes the model itself for the draft then, and maps only other architectures than those of
    `tpudeploy.catalog.families` to their draft layers (config/speculative.py, hf_config_override).
    """
    if not engine_values.is_mtp(fields.get("method")) or fields.get("model"):
        return

    model = families.known_model(server.profile.model.id)
    if model is None:
        return
    has_assistant = model.architecture.startswith("Gemma4") and model.name.endswith("-it")
    hint = f"model: {model.name}-assistant" if has_assistant else "name the draft model's repository"
    yield f"method mtp needs the field `model`: {model.name} has no draft layers of its own", hint


def _is_valid(name: str, value: Json, version: str) -> bool:
    """Return whether the flag takes the value; otherwise `args` or `engine_values` reports that first."""
    flag = flags.find(name, version)
    if flag is None:
        return True
    try:
        flags.express(flag, value)
    except flags.Inexpressible:
        return False
    return not list(values.refusals(flag, value, version))
