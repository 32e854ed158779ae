"""Check values of flags as vLLM's configuration objects do, each at its place in the mapping."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from tpudeploy.catalog import values
from tpudeploy.catalog.flags import VLLM_VERSION, Flag
from tpudeploy.config import codes
from tpudeploy.config.diagnose import as_yaml, did_you_mean, quoted
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules.server import Server
from tpudeploy.config.rules.violation import Violation
from tpudeploy.domain.deployment import Json

MOE_OF_CUDA = ("flashinfer_moe_ep_mega_cutedsl", "flashinfer_moe_ep_mega_deep_gemm")

# The flags that register more names for another one.
_PLUGINS = {"tool-call-parser": "tool-parser-plugin", "reasoning-parser": "reasoning-parser-plugin"}
_ADAPTER_FLAGS = ("max-loras", "max-lora-cls-labels", "lora-dtype", "max-cpu-loras", "default-mm-loras")
_OPENED_BY = {
    "structured-outputs-config": ("reasoning-parser-plugin", "reasoning-parser"),
    "reasoning-config": ("reasoning-parser-plugin", "reasoning-parser"),
}
_VERSION = r"(?i)\s*(v?[0-9]+(\.[0-9]+)*([-._]?[a-z]+[-._]?[0-9]*){0,3}(\+[a-z0-9.]+)?)?\s*"
_MOST_LISTED = 16


def refusals(server: Server, path: Path, flag: Flag, value: Json) -> Iterator[Violation]:
    """Yield what vLLM refuses after it has parsed its command line."""
    plugin = _PLUGINS.get(flag.name)
    if plugin is not None and server.argument(plugin):
        return
    # Without --enable-lora, vLLM creates no configuration of adapters and does not read its flags.
    if flag.name in _ADAPTER_FLAGS and server.argument("enable-lora") is not True:
        return
    # Without --enable-auto-tool-choice, the engine starts and does not look the parser up.
    is_unused = flag.name == "tool-call-parser" and server.argument("enable-auto-tool-choice") is not True
    doubtful = server.is_doubtful or is_unused
    if flag.name == "show-hidden-metrics-for-version" and not re.fullmatch(_VERSION, str(value)):
        message, hint = f"`--{flag.name}` must be a version, not {quoted(str(value))}", 'e.g. "0.31"'
        yield Violation(codes.FLAG_VALUE, path, message, hint, is_warning=doubtful)
    field_refusals = list(values.refusals(flag, value, server.release))
    for refusal in field_refusals:
        yield _violation(flag, path, value, refusal, server.release)._replace(is_warning=doubtful)
    if not field_refusals and flag.name in _FIELD_RULES:
        for violation in _check_fields(server, path, flag, value):
            yield violation._replace(is_warning=doubtful)


def _check_fields(server: Server, path: Path, flag: Flag, value: Json) -> Iterator[Violation]:
    """Yield what vLLM refuses in a mapping whose fields are valid one by one."""
    # A plugin registers more names for the field, and a flag of its own overrides the field.
    is_open = any(server.argument(other) for other in _OPENED_BY.get(flag.name, ()))
    tree = mapping(value)
    if is_open or tree is None:
        return
    for message, hint in _FIELD_RULES[flag.name](tree):
        yield Violation(codes.FLAG_VALUE, path, f"`--{flag.name}` {message}", hint, is_key=True)


def _violation(flag: Flag, path: Path, value: Json, refusal: values.ValueRefusal, version: str) -> Violation:
    listed = list(refusal.choices[:_MOST_LISTED])
    if len(refusal.choices) > _MOST_LISTED:
        listed.append("…")
    reason = refusal.message.replace("{choices}", ", ".join(listed))
    if refusal.is_key:
        word: str | None = str(refusal.path[-1])
        message = f"`--{flag.name}` {reason} in vLLM {version}"
    else:
        where = " ".join([f"`--{flag.name}`", *filter(None, [".".join(map(str, refusal.path))])])
        word = _word_at(value, refusal.path)
        message = f"{where} {reason} in vLLM {version}"
        message += "" if word is None else f", not {quoted(word)}"
    hint = did_you_mean(word or "", refusal.choices)
    return Violation(codes.FLAG_VALUE, (*path, *refusal.path), message, hint, is_key=refusal.is_key)


def _word_at(value: Json, path: Path) -> str | None:
    """Return the scalar at a path inside a value, or None: for a list or a mapping, and inside the JSON of a text."""
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[str(part)]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return None if isinstance(value, list | dict) else as_yaml(value)


def mapping(value: Any) -> Mapping[str, Any] | None:
    """Return a mapping, written as such or as JSON, or None. Text that is no JSON is reported elsewhere."""
    try:
        tree = json.loads(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, Mapping) else None


# What tpu_inference 0.32.0 TPUModelRunner supports: else "Unsupported speculative decoding method".
_SPECULATES_ON_TPU = ("ngram", "eagle3", "dflash", "mtp")
_NEEDS_MODEL = ("eagle", "eagle3", "dflash", "draft_model", "medusa")


def speculation(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what vLLM 0.32.0 config/speculative.py, or the runner for TPU, refuses in a mapping with valid fields.

    Each is a clause that follows the name of the flag, and what to do.
    """
    method, model, tokens = tree.get("method"), tree.get("model"), tree.get("num_speculative_tokens")
    if method is not None and not is_mtp(method) and method not in _SPECULATES_ON_TPU:
        names = ", ".join(_SPECULATES_ON_TPU)
        yield f"method {quoted(str(method))} does not run on TPU", f"methods that do: {names}"
    elif tree.get("tensor_parallel_size") is not None:
        yield "takes no tensor_parallel_size", "write draft_tensor_parallel_size"
    elif method is None and not model:
        yield "needs a method or a model", "e.g. {method: ngram, num_speculative_tokens: 3}"
    elif method in _NEEDS_MODEL and not model:
        yield f"method {quoted(str(method))} needs the field `model`", "name the draft model's repository"
    elif not tokens:
        yield "needs the field `num_speculative_tokens`", "e.g. num_speculative_tokens: 3"
    elif method == "ngram":
        yield from _lookup(tree.get("prompt_lookup_min"), tree.get("prompt_lookup_max"))
    yield from _fields_of_other_methods(tree)


def is_mtp(method: Any) -> bool:
    """Return whether vLLM reads the method as mtp: the names of single models (`gemma4_mtp`) are deprecated aliases."""
    return isinstance(method, str) and method.endswith("mtp")


def _fields_of_other_methods(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    names = ("synthetic_acceptance_rates", "synthetic_acceptance_length")
    synthetic = [name for name in names if tree.get(name) is not None]
    if tree.get("rejection_sample_method") == "synthetic":
        if len(synthetic) != 1:
            yield "needs synthetic_acceptance_rates or synthetic_acceptance_length, and not both", "keep one of them"
    elif synthetic:
        yield f"{synthetic[0]} works only with rejection_sample_method synthetic", "leave it out"
    if tree.get("index_share_for_mtp_iteration") is not None and not is_mtp(tree.get("method")):
        yield "index_share_for_mtp_iteration works only with method mtp", "leave it out"
    for name in ("use_heterogeneous_vocab", "enable_adaptive_verification"):
        if _is_true(tree.get(name, False)):
            yield f"{name} does not run on TPU", "leave it out"


def _buckets(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for family, bounds in tree.items():
        if any(isinstance(bound, bool) for bound in bounds):
            yield f"{family} must be numbers, not true or false", f"e.g. {family}: [0.1, 1]"
        elif any(not low < high for low, high in pairwise(float(bound) for bound in bounds)):
            yield f"{family} must have rising bounds", f"e.g. {family}: [0.1, 1]"


def _lookup(least: Any, most: Any) -> Iterator[tuple[str, str]]:
    if type(least) is int and type(most) is int and least > most:
        yield f"prompt_lookup_min {least} is above prompt_lookup_max {most}", "swap them"


# The modules of tpu_inference 0.32.0 with the connectors that its platform accepts.
_MODULE_OF_CONNECTOR = {
    "TPUConnector": ("tpu_inference.distributed.tpu_connector", "tpu_inference.distributed.tpu_raiden_connector"),
    "TPUConnectorHMA": ("tpu_inference.distributed.tpu_connector_hma",),
    "TPUOffloadConnector": ("tpu_inference.offload.tpu_offload_connector",),
    "RaidenOffloadConnector": ("tpu_inference.offload.raiden_offload_connector",),
}


def _transfer(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM 0.32.0 config/kv_transfer.py and distributed/kv_transfer/kv_connector/factory.py do."""
    if not tree.get("kv_connector"):
        yield "needs the field `kv_connector`", "TPUConnector, TPUConnectorHMA or TPUOffloadConnector"
    elif not tree.get("kv_role"):
        yield "needs the field `kv_role` beside `kv_connector`", "kv_producer, kv_consumer or kv_both"
    else:
        modules, module = _MODULE_OF_CONNECTOR[tree["kv_connector"]], tree.get("kv_connector_module_path")
        hint = f"kv_connector_module_path: {modules[0]}"
        if not module:
            yield "needs the field `kv_connector_module_path`: vLLM has no connector for TPU itself", hint
        elif str(module).startswith("tpu_inference.") and module not in modules:
            yield f"{module} has no {tree['kv_connector']}", hint


def _parser_of_reasoning(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM 0.32.0 reasoning/__init__.py does, unless a plugin registers more names."""
    name, schema = tree.get("reasoning_parser"), values.schema("reasoning-parser")
    names = () if schema is None else schema["expected"]
    if name and name not in names and not tree.get("reasoning_parser_plugin"):
        hint = did_you_mean(str(name), names) or "the parser of the model's family, e.g. gemma4"
        yield f"reasoning_parser {quoted(str(name))} is not registered in vLLM {VLLM_VERSION}", hint


def _pooler(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM 0.32.0 config/pooler.py does."""
    if tree.get("logit_sigma") is not None and float(tree["logit_sigma"]) == 0:
        yield "logit_sigma must not be 0: logits are divided by it", "leave it out"
    both = [name for name in ("seq_pooling_type", "tok_pooling_type") if tree.get(name) is not None]
    if tree.get("pooling_type") is not None and both:
        yield f"pooling_type cannot be combined with {both[0]}", "keep one of them"


def _structured(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _parser_of_reasoning(tree)
    backend = tree.get("backend", "auto")
    if _is_true(tree.get("disable_any_whitespace")) and backend not in ("xgrammar", "guidance"):
        yield f"disable_any_whitespace does not work with backend {backend}", "backend: xgrammar, or guidance"
    if _is_true(tree.get("disable_additional_properties")) and backend != "guidance":
        yield f"disable_additional_properties does not work with backend {backend}", "backend: guidance"


def _balancing(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    is_async = _is_true(tree.get("use_async", True))
    if is_async and tree.get("policy", "default") != "default":
        yield "use_async works only with the default policy", "policy: default, or use_async: false"
    if is_async and tree.get("communicator") in ("torch_nccl", "pynccl"):
        yield f"use_async does not work with communicator {tree['communicator']}", "communicator: torch_gloo, or nixl"
    redundant = tree.get("num_redundant_experts")
    if isinstance(redundant, int | str) and str(redundant) not in ("0", "False"):
        yield "num_redundant_experts needs --enable-eplb, which does not work on TPU", "leave it out"
    interval = tree.get("log_balancedness_interval", 1)
    if _is_true(tree.get("log_balancedness")) and type(interval) is int and interval <= 0:
        yield "log_balancedness needs a log_balancedness_interval of at least 1", "log_balancedness_interval: 1"


def _encoder_cache(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if tree.get("manager_config") and not tree.get("encoder_cache_manager_cls"):
        yield "manager_config needs encoder_cache_manager_cls", "name the class that it configures"


_PROTON_DEFAULTS = {"proton_context": "shadow", "proton_data": "tree", "proton_profiler_dir": ""}


def _profiler(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    profiler = tree.get("profiler")
    for name in ("torch", "proton"):
        folder = f"{name}_profiler_dir"
        if profiler == name and not tree.get(folder):
            yield f"profiler {name} needs {folder}", f"e.g. {folder}: /var/log/profile"
    if profiler != "torch":
        names = [
            name for name in ("torch_profiler_dir", "torch_profiler_activities") if tree.get(name) not in (None, "")
        ]
        names += ["capture_torch_profiler"] if _is_true(tree.get("capture_torch_profiler")) else []
        yield from ((f"{name} works only with profiler torch", "profiler: torch") for name in names)
    if profiler != "proton":
        off = (None, False, "")
        names = [n for n in tree if n.startswith("proton_") and tree[n] not in (*off, _PROTON_DEFAULTS.get(n))]
        yield from ((f"{name} works only with profiler proton", "profiler: proton") for name in names)


def _classes(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, target in tree.items():
        module, _, of_class = str(target).partition(":")
        if not (module and of_class):
            yield f"{name} must be of the form module:Class", f"e.g. {name}: my_package.models:MyModel"


def _kernels(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM's config/kernel.py validate_flashinfer_moe_ep_model does: only DeepSeek-V4 on CUDA has them."""
    if tree.get("moe_backend") in MOE_OF_CUDA:
        yield f"moe_backend {tree['moe_backend']} does not work on TPU: it is a kernel of CUDA", "leave it out"
    if tree.get("linear_backend_per_quant") == {}:
        yield "linear_backend_per_quant needs at least one item", "leave it out"


def _compilation(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM 0.32.0 config/compilation.py does, which imports the module of each pass."""
    for name, function in (tree.get("inductor_passes") or {}).items():
        if not str(function).rpartition(".")[0]:
            yield f"inductor_passes {name} must have the form module.function", f"e.g. {name}: my_package.my_pass"


def _attention(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM 0.32.0 config/vllm.py does."""
    if tree.get("hisparse_config") is not None:
        yield "hisparse_config does not work on TPU: it is for NVIDIA's CUDA", "leave it out"


def _ec_transfer(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Check as vLLM 0.32.0 config/ec_transfer.py does."""
    if tree.get("ec_connector") and not tree.get("ec_role"):
        yield "needs the field `ec_role` beside `ec_connector`", "ec_producer, ec_consumer or ec_both"


def _is_true(value: Any) -> bool:
    """Return whether pydantic reads the JSON value as true."""
    return value is True or value == 1 or str(value).lower() in ("true", "yes", "on", "y", "t", "1")


# The rules between the fields of one mapping.
_FIELD_RULES: Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]] = {
    "attention-config": _attention,
    "compilation-config": _compilation,
    "custom-histogram-buckets": _buckets,
    "ec-transfer-config": _ec_transfer,
    "kernel-config": _kernels,
    "kv-transfer-config": _transfer,
    "ec-manager-config": _encoder_cache,
    "eplb-config": _balancing,
    "model-class-overrides": _classes,
    "pooler-config": _pooler,
    "profiler-config": _profiler,
    "reasoning-config": _parser_of_reasoning,
    "structured-outputs-config": _structured,
}
