"""Values of flags that vLLM's configuration objects refuse, each at the place in the mapping where it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpudeploy.catalog import values
from tpudeploy.catalog.flags import VLLM_VERSION, Flag
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.nodes import Entry, MapNode, Node, Path, ScalarNode, find, key_location, plain
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity

# A flag that adds names to the table of another one.
_PLUGINS = {"tool-call-parser": "tool-parser-plugin", "reasoning-parser": "reasoning-parser-plugin"}
_OF_ADAPTERS = ("max-loras", "max-lora-cls-labels", "lora-dtype", "max-cpu-loras", "default-mm-loras")
_MOST_LISTED = 16


def refused(root: MapNode, path: Path, flag: Flag, entry: Entry, severity: Severity) -> Iterator[Diagnostic]:
    """Yield what vLLM would refuse after its command line was read."""
    plugin = _PLUGINS.get(flag.name)
    if plugin is not None and look.argument_value(root, plugin):
        return
    # Without --enable-lora vLLM makes no configuration of adapters, and does not look at its flags.
    if flag.name in _OF_ADAPTERS and look.argument_value(root, "enable-lora") is not True:
        return
    if flag.name == "tool-call-parser" and look.argument_value(root, "enable-auto-tool-choice") is not True:
        severity = Severity.WARNING  # the engine starts, and never looks it up
    value = plain(entry.value)
    found = list(values.refusals(flag, value))
    for refusal in found:
        yield _diagnostic(flag, path, entry.value, refusal, severity)
    tree = _mapping(value)
    if not found and tree is not None and flag.name in _TOGETHER:
        for message, hint in _TOGETHER[flag.name](tree):
            yield problem(
                codes.FLAG_VALUE, f"`--{flag.name}` {message}", entry.key, path=path, hint=hint, severity=severity
            )


def _diagnostic(flag: Flag, path: Path, node: Node, refusal: values.Refusal, severity: Severity) -> Diagnostic:
    at, word = _place(node, refusal)
    choices = ", ".join(refusal.choices[:_MOST_LISTED]) + (", …" if len(refusal.choices) > _MOST_LISTED else "")
    where = "" if refusal.is_key or not refusal.path else f" {'.'.join(map(str, refusal.path))}"
    said = refusal.message.format(choices=choices) if "{choices}" in refusal.message else refusal.message
    message = f"`--{flag.name}`{where} {said} in vLLM {VLLM_VERSION}"
    message += "" if refusal.is_key or word is None else f", not {quoted(word)}"
    hint = did_you_mean(str(refusal.path[-1]) if refusal.is_key else word or "", refusal.choices)
    return problem(codes.FLAG_VALUE, message, at, path=(*path, *refusal.path), hint=hint, severity=severity)


def _place(node: Node, refusal: values.Refusal) -> tuple[Location, str | None]:
    """Where it is written, and the word there; JSON that is written as text is one place."""
    here = find(node, refusal.path)
    if here is None:
        return node.at, None
    at = key_location(node, refusal.path) if refusal.is_key else None
    return at or here.at, here.text if isinstance(here, ScalarNode) else None


def _mapping(value: Any) -> Mapping[str, Any] | None:
    tree = json.loads(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    return tree if isinstance(tree, Mapping) else None


# What tpu_inference 0.32.0 runner/tpu_runner.py:1051-1064 runs; the rest is `Unsupported speculative decoding method`.
_SPECULATES_ON_TPU = ("ngram", "eagle3", "dflash", "mtp", "gemma4_mtp")
_NEEDS_MODEL = ("eagle", "eagle3", "dflash", "draft_model", "medusa")


def _speculation(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    method = tree.get("method")
    if method is not None and method not in _SPECULATES_ON_TPU:
        names = ", ".join(_SPECULATES_ON_TPU)
        yield f"method {quoted(str(method))} does not run on TPU", f"methods that do: {names}"
    elif tree.get("tensor_parallel_size") is not None:
        yield "takes no tensor_parallel_size", "write draft_tensor_parallel_size"
    elif method is None and not tree.get("model"):
        yield "needs a method or a model", "e.g. {method: ngram, num_speculative_tokens: 3}"
    elif method in _NEEDS_MODEL and not tree.get("model"):
        yield f"method {quoted(str(method))} needs the field `model`", "name the draft model's repository"
    elif method == "ngram" and not tree.get("num_speculative_tokens"):
        yield "needs the field `num_speculative_tokens`", "e.g. num_speculative_tokens: 3"
    elif method == "ngram":
        yield from _lookup(tree.get("prompt_lookup_min"), tree.get("prompt_lookup_max"))


def _lookup(least: Any, most: Any) -> Iterator[tuple[str, str]]:
    if type(least) is int and type(most) is int and least > most:
        yield f"prompt_lookup_min {least} is above prompt_lookup_max {most}", "swap them"


def _transfer(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Refused by vLLM 0.32.0 config/kv_transfer.py: a connector has a role."""
    if tree.get("kv_connector") and not tree.get("kv_role"):
        yield "needs the field `kv_role` beside `kv_connector`", "kv_producer, kv_consumer or kv_both"


def _structured(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    backend = tree.get("backend", "auto")
    if _is_true(tree.get("disable_any_whitespace")) and backend not in ("xgrammar", "guidance"):
        yield f"disable_any_whitespace does not work with backend {backend}", "backend: xgrammar, or guidance"
    if _is_true(tree.get("disable_additional_properties")) and backend != "guidance":
        yield f"disable_additional_properties does not work with backend {backend}", "backend: guidance"


def _balancing(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    is_async = _is_true(tree.get("use_async", True))
    if is_async and tree.get("policy", "default") != "default":
        yield "use_async works with the default policy alone", "policy: default, or use_async: false"
    if is_async and tree.get("communicator") in ("torch_nccl", "pynccl"):
        yield f"use_async does not work with communicator {tree['communicator']}", "communicator: torch_gloo, or nixl"
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
        yield from ((f"{name} works with profiler torch alone", "profiler: torch") for name in names)
    if profiler != "proton":
        off = (None, False, "")
        names = [n for n in tree if n.startswith("proton_") and tree[n] not in (*off, _PROTON_DEFAULTS.get(n))]
        yield from ((f"{name} works with profiler proton alone", "profiler: proton") for name in names)


def _classes(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, target in tree.items():
        module, _, of_class = str(target).partition(":")
        if not (module and of_class):
            yield f"{name} must be of the form module:Class", f"e.g. {name}: my_package.models:MyModel"


def _is_true(value: Any) -> bool:
    """As pydantic reads a boolean in JSON."""
    return value is True or value == 1 or str(value).lower() in ("true", "yes", "on", "y", "t", "1")


_TOGETHER: Mapping[str, Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]] = {
    "speculative-config": _speculation,
    "kv-transfer-config": _transfer,
    "ec-manager-config": _encoder_cache,
    "eplb-config": _balancing,
    "model-class-overrides": _classes,
    "profiler-config": _profiler,
    "structured-outputs-config": _structured,
}
