"""Writes tpudeploy/catalog/_vllm_values.py from the configuration objects of the vLLM that this Python has.

    PYTHON-WITH-VLLM tests/oracle/dump_vllm_values.py [PATH]

Run it when the pinned vLLM changes, beside dump_vllm_flags.py; vLLM's CPU build has the same objects. It needs nothing of
tpudeploy. What pydantic knows of a value (type, bounds, choices) is taken from its core schema; what vLLM's own functions
add is by hand in tpudeploy/config/rules/.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

# vLLM lives in another Python than the one that type-checks, and so does its pydantic.
import vllm.config  # type: ignore[import-not-found] # as above
from pydantic import TypeAdapter
from vllm import __version__
from vllm.config.multimodal import (  # type: ignore[import-not-found] # as above
    AudioDummyOptions,
    BaseDummyOptions,
    ImageDummyOptions,
    VideoDummyOptions,
)
from vllm.config.parallel import _NUMACTL_CPUSET_PATTERN  # type: ignore[import-not-found] # as above
from vllm.config.quantization import (  # type: ignore[import-not-found] # as above
    _ONLINE_SHORTHANDS,
    QUANT_KEY_NAMES,
    QuantizationConfigArgs,
)
from vllm.config.speculative import SpeculativeConfig  # type: ignore[import-not-found] # as above
from vllm.engine.arg_utils import AsyncEngineArgs, get_type_hints  # type: ignore[import-not-found] # as above
from vllm.entrypoints.openai.models.protocol import LoRAModulePath  # type: ignore[import-not-found] # as above
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS  # type: ignore[import-not-found] # as above
from vllm.model_executor.model_loader import (  # type: ignore[import-not-found] # as above
    _LOAD_FORMAT_TO_MODEL_LOADER,
)
from vllm.reasoning import ReasoningParserManager  # type: ignore[import-not-found] # as above
from vllm.tokenizers.registry import TokenizerRegistry  # type: ignore[import-not-found] # as above
from vllm.tool_parsers import ToolParserManager  # type: ignore[import-not-found] # as above
from vllm.transformers_utils.config import (  # type: ignore[import-not-found] # as above
    _CONFIG_FORMAT_TO_CONFIG_PARSER,
)
from vllm.v1.attention.backends.registry import AttentionBackendEnum  # type: ignore[import-not-found] # as above
from vllm.v1.kv_cache_interface import KVCacheSpecKind  # type: ignore[import-not-found] # as above
from vllm.v1.metrics.buckets import BUCKET_FAMILY_KEYS  # type: ignore[import-not-found] # as above

TABLE = Path(__file__).parents[2] / "tpudeploy" / "catalog" / "_vllm_values.py"

HEADER = '''\
"""The values that vLLM's configuration objects accept, written by tests/oracle/dump_vllm_values.py; never edit by hand.

`SCHEMAS` holds one JSON document a line: the flag and the core schema of its value, as pydantic validates it; `choices`
are words in any case. `DIGEST` is of the lines.
"""

VLLM_VERSION = "{version}"
DIGEST = "{digest}"

SCHEMAS = r"""
{schemas}
"""
'''

# A flag is a field of the same name of one of these, in this order; a few have other names there.
OWNERS = (
    *(
        "ModelConfig",
        "CacheConfig",
        "ParallelConfig",
        "SchedulerConfig",
        "LoadConfig",
        "LoRAConfig",
        "MultiModalConfig",
    ),
    *("ObservabilityConfig", "OffloadConfig", "UVAOffloadConfig", "PrefetchOffloadConfig", "StructuredOutputsConfig"),
    *("VllmConfig", "MambaConfig", "CompilationConfig", "KernelConfig", "AttentionConfig"),
)
RENAMED = {"kv_cache_dtype": "cache_dtype", "limit_mm_per_prompt": "limit_per_prompt"}
ANY: dict[str, Any] = {"type": "any"}


def simplified(schema: Mapping[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The part of a core schema that is plain data; what only a function decides is `any`."""
    reader = SIMPLIFIERS.get(schema["type"])
    if schema["type"] in PLAIN:
        return {key: value for key, value in schema.items() if key in PLAIN_KEYS}
    return ANY if reader is None else reader(schema, definitions)


PLAIN = {"int", "float", "str", "bool", "none", "any"}
PLAIN_KEYS = {"type", "ge", "gt", "le", "lt", "min_length", "max_length", "pattern", "allow_inf_nan", "multiple_of"}


def literal(schema: Mapping[str, Any], _: Any) -> dict[str, Any]:
    return {"type": "literal", "expected": list(schema["expected"])}


def enumeration(schema: Mapping[str, Any], _: Any) -> dict[str, Any]:
    return {"type": "literal", "expected": [m.value for m in schema["members"] if isinstance(m.value, int | str)]}


def inner(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    return simplified(schema["schema"], definitions)


BACKEND = {"type": "choices", "expected": list(AttentionBackendEnum.__members__)}

# vLLM 0.32.0 config/multimodal.py: a number stands for a mapping with that count.
_LIMIT = {"type": "int", "ge": 0}


def before(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    """A function that turns the name of an enumeration's member into the member; others may turn anything into it."""
    name = schema["function"]["function"].__name__
    below = schema["schema"]
    while below["type"] in {"nullable", "default", "function-before", "function-wrap"}:
        below = below["schema"]
    if below["type"] == "enum":
        members: list[Enum] = list(below["cls"].__members__.values())
        values = [value for m in members for value in (m.value,) if type(value) is int]
        words = {"type": "choices", "expected": list(below["cls"].__members__)}
        either = {"type": "union", "choices": [words, {"type": "literal", "expected": values}]} if values else words
        return {"type": "nullable", "schema": either}
    if name.startswith("_normalize_"):
        return {"type": "keyword", "expected": list(below["expected"])}
    if name == "_to_list_str":
        return union_of({"type": "str"}, simplified(schema["schema"], definitions))
    if name == "validate_backend_per_kind_before":
        return {"type": "dict", "keys_schema": names(kind.value for kind in KVCacheSpecKind), "values_schema": BACKEND}
    return simplified(schema["schema"], definitions) if name in CHECKING else ANY


# Functions before the schema that refuse or lower, and leave what the schema then refuses.
CHECKING = {
    "_reject_bool_histogram_bounds",
    "_validate_targets",
    "reject_removed_parameters",
    "validate_pass_config_before",
    "validate_quantization_before",
}


def wrapped(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    """Functions around a schema: vLLM has one kind, which lets null through."""
    below = inner(schema, definitions)
    is_skipping = schema["function"]["function"].__name__ == "_skip_none_validation"
    return {"type": "nullable", "schema": below} if is_skipping else below


# What only a Python value can be, and no word or JSON.
OF_PYTHON = {"is-instance", "callable", "is-subclass", "custom-error"}


def union(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
    read = [simplified(c, definitions) for c in choices if c["type"] not in OF_PYTHON]
    return ANY if ANY in read else {"type": "union", "choices": read}


def dictionary(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    return {
        "type": "dict",
        "keys_schema": simplified(schema.get("keys_schema", ANY), definitions),
        "values_schema": simplified(schema.get("values_schema", ANY), definitions),
    }


def sequence(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    limits = {key: schema[key] for key in ("type", "min_length", "max_length") if key in schema}
    return {**limits, "items_schema": simplified(schema.get("items_schema", ANY), definitions)}


def tuple_of(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
    items = [simplified(item, definitions) for item in schema["items_schema"]]
    variadic = {"variadic_item_index": schema["variadic_item_index"]} if "variadic_item_index" in schema else {}
    return {"type": "tuple", "items_schema": items, **variadic}


def record(schema: Mapping[str, Any], definitions: Any) -> dict[str, Any]:
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


def defined(schema: Mapping[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    for definition in schema["definitions"]:
        definitions[definition["ref"]] = definition
    return simplified(schema["schema"], definitions)


def referred(schema: Mapping[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Written out where it stands; one that holds itself is left open."""
    name = schema["schema_ref"]
    rest = {key: value for key, value in definitions.items() if key != name}
    return simplified(definitions[name], rest) if name in definitions else ANY


SIMPLIFIERS: dict[str, Any] = {
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


def of_type(hint: Any) -> dict[str, Any]:
    return simplified(TypeAdapter(hint).core_schema, {})


def is_open(schema: Any) -> bool:
    """Whether it says nothing that the command line's own parser does not say already."""
    match schema:
        case {"type": "nullable", "schema": below}:
            return is_open(below)
        case {"type": "any" | "str" | "bool" | "int" | "float", **rest}:
            return not rest
        case {"type": "dict", "keys_schema": {"type": "str"}, "values_schema": values}:
            return is_open(values) and values["type"] == "any"
    return False


def field_of(name: str) -> dict[str, Any]:
    for owner in OWNERS:
        fields = of_type(getattr(vllm.config, owner))["fields"]
        field = fields.get(RENAMED.get(name, name))
        if field is not None and not is_open(field["schema"]):
            return dict(field["schema"])
    return ANY


def names(words: Any, kind: str = "literal") -> dict[str, Any]:
    return {"type": kind, "expected": sorted(words)}


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    by_hand = {
        "config_format": names([*_CONFIG_FORMAT_TO_CONFIG_PARSER, "auto"]),
        "custom_histogram_buckets": buckets(),
        "distributed_executor_backend": {"type": "str", "pattern": "^(ray|mp|uni|external_launcher|.+\\..+)$"},
        "device_ids": {"type": "str", "pattern": r"^-?\d+(\s*,\s*-?\d+)*$"},
        "tokenizer_mode": names([*TokenizerRegistry.tokenizers, "auto"]),
        "numa_bind_cpus": listed({"type": "str", "pattern": _NUMACTL_CPUSET_PATTERN.pattern}, least=1),
        "numa_bind_nodes": listed({"type": "int", "ge": 0}, least=1),
        "sse_keep_alive_interval": {"type": "int", "ge": 0},  # launchers/cli_args.py, validate_parsed_serve_args
        "speculative_config": of_type(SpeculativeConfig),
        "tool_call_parser": names(ToolParserManager.list_registered()),
        "reasoning_parser": names(ReasoningParserManager.list_registered()),
        "limit_mm_per_prompt": limits(),
        "lora_modules": adapters(),
        "spec_tokens": {"type": "int", "gt": 0},
        "quantization_config": refined("quantization_config", of_type(QuantizationConfigArgs)),
        "quantization": names(QUANTIZATION_METHODS, "choices"),
        "load_format": names(_LOAD_FORMAT_TO_MODEL_LOADER, "choices"),
    }
    for field in dataclasses.fields(AsyncEngineArgs):
        hints = [hint for hint in get_type_hints(field.type) if inspect.isclass(hint)]
        objects = [hint for hint in hints if dataclasses.is_dataclass(hint)]
        enums = [hint for hint in hints if issubclass(hint, Enum)]
        if field.name in by_hand or field.name.startswith("_"):
            continue
        if objects:
            yield field.name, refined(field.name, of_type(objects[0]))
        elif enums and issubclass(enums[0], int):
            yield field.name, names(str(member.value) for member in enums[0])
        elif enums:
            yield field.name, before({"function": {"function": before}, "schema": of_core(enums[0])}, {})["schema"]
        else:
            yield field.name, field_of(field.name)
    yield from by_hand.items()


# What the functions behind the schema of a mapping's field refuse, as a schema: vLLM 0.32.0 config/compilation.py:889-1078,
# config/vllm.py:2622, config/quantization.py:160.
_POSITIVE = {"type": "list", "items_schema": {"type": "int", "gt": 0}}
_CUSTOM_OP = {"type": "str", "pattern": "^(all|none|[+-].+)$"}
_KEYS: dict[str, Any] = {"type": "nullable", "schema": {"type": "literal", "expected": sorted(QUANT_KEY_NAMES)}}


def _spec(kind: str) -> dict[str, Any]:
    """A name of a method for this kind of layer, or the names for weights and activations."""
    shorthands = [name for name, shorthand in _ONLINE_SHORTHANDS.items() if getattr(shorthand, kind) is not None]
    words = {
        "type": "literal",
        "expected": sorted({*shorthands, *(QUANT_KEY_NAMES)} - (_ONLINE_SHORTHANDS.keys() - set(shorthands))),
    }
    mapping = {
        "type": "typed-dict",
        "fields": {name: optional(_KEYS) for name in ("weight", "activation")},
        "extra_behavior": "forbid",
        "total": False,
    }
    return {"type": "nullable", "schema": union_of(words, mapping)}


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "typed-dict-field", "schema": schema, "required": False}


def union_of(*choices: dict[str, Any]) -> dict[str, Any]:
    return {"type": "union", "choices": list(choices)}


REFINED: dict[str, dict[str, dict[str, Any]]] = {
    "compilation_config": {
        "compile_cache_save_format": {"type": "literal", "expected": ["binary", "unpacked"]},
        "compile_ranges_endpoints": {"type": "nullable", "schema": _POSITIVE},
        "custom_ops": {"type": "list", "items_schema": _CUSTOM_OP},
        "decoder_replay_cudagraph_capture_sizes": _POSITIVE,
        "encoder_cudagraph_token_budgets": _POSITIVE,
    },
    # tpu_inference 0.32.0 platforms/tpu_platform.py, check_and_update_config.
    "kv_transfer_config": {
        "kv_connector": {
            "type": "literal",
            "expected": ["TPUConnector", "TPUConnectorHMA", "TPUOffloadConnector", "RaidenOffloadConnector"],
        },
    },
    "quantization_config": {
        "linear": _spec("linear"),
        "moe": _spec("moe"),
        "targets": {
            "type": "nullable",
            "schema": {"type": "dict", "values_schema": {"type": "literal", "expected": sorted(_ONLINE_SHORTHANDS)}},
        },
    },
}


def refined(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    for field, better in REFINED.get(name, {}).items():
        schema["fields"][field]["schema"] = better
    return schema


def listed(items: dict[str, Any], least: int) -> dict[str, Any]:
    return {"type": "list", "items_schema": items, "min_length": least}


def buckets() -> dict[str, Any]:
    """Bounds by family (config/observability.py); that they rise is by hand in tpudeploy/config/."""
    bounds = listed({"type": "float", "gt": 0, "allow_inf_nan": False}, least=1)
    fields = {family: optional(bounds) for family in sorted(BUCKET_FAMILY_KEYS)}
    return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "total": False}


def limits() -> dict[str, Any]:
    """Numbers, or mappings of the options that this kind of item has; of a kind that vLLM does not know, of a count."""
    options = {
        "audio": AudioDummyOptions,
        "image": ImageDummyOptions,
        "video": VideoDummyOptions,
    }
    fields = {kind: optional(union_of(_LIMIT, of_type(shape))) for kind, shape in options.items()}
    extras = union_of(_LIMIT, of_type(BaseDummyOptions))
    return {"type": "typed-dict", "fields": fields, "extra_behavior": "allow", "extras_schema": extras, "total": False}


def adapters() -> dict[str, Any]:
    """NAME=PATH, or the fields of an adapter, whose types nothing checks; launchers/cli_args.py, LoRAParserAction."""
    fields = {
        field.name: {**optional(ANY), "required": field.default is dataclasses.MISSING}
        for field in dataclasses.fields(LoRAModulePath)
    }
    mapping = {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "total": False}
    return listed(union_of({"type": "str", "pattern": "^([^,]*=[^,]*)?$"}, mapping), least=0)


def of_core(hint: Any) -> Any:
    return TypeAdapter(hint).core_schema


def main() -> None:
    target = Path(sys.argv[1]) if sys.argv[1:] else TABLE
    rows = [
        json.dumps([name.replace("_", "-"), schema], separators=(",", ":"), ensure_ascii=True)
        for name, schema in sorted(dict(schemas()).items())
        if not is_open(schema)
    ]
    text = HEADER.format(
        version=__version__.split("+")[0],
        digest=hashlib.sha256("\n".join(rows).encode()).hexdigest(),
        schemas="\n".join(rows),
    )
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
