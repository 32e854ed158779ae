"""Check a flag's value as vLLM's configuration objects do, by pydantic: types, bounds, choices, fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic_core import SchemaValidator, ValidationError

from tpudeploy.catalog import releases
from tpudeploy.catalog._spelling import ValueType, count_of
from tpudeploy.catalog.flags import Flag, Style


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRefusal:
    """A part of a value that vLLM refuses: its `path` in the value, why, and the words that vLLM accepts there, if any.

    `is_key`: a key of a mapping is wrong, not its value.
    """

    path: tuple[str | int, ...]
    message: str
    choices: tuple[str, ...] = ()
    is_key: bool = False


def refusals(flag: Flag, value: Any, release: str | None = None) -> Iterator[ValueRefusal]:
    """Yield what a release's configuration refuses in a value that the flag can express."""
    core_schema = schema(flag.name, release)
    if core_schema is None or value is None:
        return
    if flag.style in (Style.WORDS, Style.REPEATED):
        yield from _absent_words(flag, value, core_schema)
    if value in _ABSENT:
        return
    try:
        _validator(flag.name, release).validate_json(json.dumps(_as_read(flag, value)))
    except ValidationError as error:
        yield from _refusals_of(error, core_schema)


# vLLM reads these words as an absent value.
_ABSENT = ("", "None")
_OPTIONAL_LISTS = ("numa-bind-cpus", "numa-bind-nodes")


def _absent_words(flag: Flag, value: Any, schema: Mapping[str, Any]) -> Iterator[ValueRefusal]:
    """Yield a refusal for each word of an optional list that vLLM reads as absent, and then refuses as an item."""
    is_optional = schema["type"] == "nullable" or flag.name in _OPTIONAL_LISTS
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        if is_optional and item in _ABSENT:
            path = (index,) if isinstance(value, list) else ()
            yield ValueRefusal(path=path, message="takes no empty item")


def schema(flag_name: str, release: str | None = None) -> Mapping[str, Any] | None:
    """Return the core schema of pydantic for a flag's value; None if any value is accepted."""
    row: Mapping[str, Any] | None = releases.table(release)["values"].get(flag_name)
    return row


@lru_cache(maxsize=64)
def _validator(name: str, release: str | None) -> Any:
    return SchemaValidator(complete_schema(schema(name, release) or {"type": "any"}))


def complete_schema(schema: Any) -> Any:
    """Return the schema with its `choices`, which are words in any case, as literals after a function."""
    if isinstance(schema, list):
        return [complete_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in ("choices", "keyword"):
        # A keyword may have - instead of _ too.
        dash = "_" if schema["type"] == "keyword" else "-"
        expected = {word.lower(): word for word in schema["expected"]}
        literal = {"type": "literal", "expected": schema["expected"]}
        function = {
            "type": "no-info",
            "function": lambda word: expected.get(str(word).lower().replace("-", dash), word),
        }
        return {"type": "function-before", "function": function, "schema": literal}
    return {key: complete_schema(value) for key, value in schema.items()}


def _as_read(flag: Flag, value: Any) -> Any:
    """Return the value as vLLM's parser passes it to the configuration."""
    if isinstance(value, list):
        return [_word_as_read(flag, item) for item in value]
    word = _word_as_read(flag, value)
    return [word] if flag.style in (Style.WORDS, Style.REPEATED) else word


def _word_as_read(flag: Flag, value: Any) -> Any:
    match flag.value_type:
        case ValueType.INT:
            return int(value)
        case ValueType.SIZE | ValueType.SIZE_OR_AUTO:
            return count_of(value) if isinstance(value, str) else value
        case ValueType.FLOAT:
            return float(value)
        case ValueType.TEXT:
            return str(value)
        case ValueType.TEXT_OR_OBJECT if not isinstance(value, dict):
            return json.loads(value) if str(value).lstrip().startswith("{") else str(value)
        case ValueType.OBJECT | ValueType.ARRAY if isinstance(value, str):
            return json.loads(value)
    return value


def _refusals_of(error: Any, schema: Mapping[str, Any]) -> Iterator[ValueRefusal]:
    """Yield a refusal for each path: of the alternatives of a union, the first that names accepted words."""
    places: dict[tuple[str | int, ...], ValueRefusal] = {}
    for finding in error.errors(include_url=False, include_input=False):
        path, choices = _path(finding["loc"], schema)
        refusal = _refusal(finding, path, choices)
        if finding["loc"][-1:] == ("[key]",):
            keys = _path(finding["loc"][:-2], schema, is_of_keys=True)[1]
            refusal = ValueRefusal(path=path, message=f"has no kind `{path[-1]}`", choices=keys, is_key=True)
        other = places.get(path)
        if other is None or (refusal.choices and not other.choices):
            places[path] = refusal
    # If something inside is wrong, it adds nothing that the whole is not another alternative.
    yield from (refusal for path, refusal in places.items() if not any(_is_inside(other, path) for other in places))


def _is_inside(path: tuple[str | int, ...], outer: tuple[str | int, ...]) -> bool:
    return len(path) > len(outer) and path[: len(outer)] == outer


def _refusal(finding: Mapping[str, Any], path: tuple[str | int, ...], names: tuple[str, ...]) -> ValueRefusal:
    match finding["type"]:
        case "extra_forbidden":
            return ValueRefusal(path=path, message=f"has no field `{path[-1]}`", choices=names, is_key=True)
        case "missing":
            return ValueRefusal(path=path[:-1], message=f"needs the field `{path[-1]}`")
        case "literal_error":
            return ValueRefusal(path=path, message="takes one of {choices}", choices=names)
        case "string_pattern_mismatch":
            form = _FORMS.get(finding["ctx"]["pattern"], f"text of the form {finding['ctx']['pattern']}")
            return ValueRefusal(path=path, message=f"must be {form}")
        case "too_short":
            return ValueRefusal(path=path, message="needs at least one item")
    description = str(finding["msg"]).removeprefix("Input should be ").partition(", ")[0]
    return ValueRefusal(path=path, message=f"must be {description}")


# The patterns of the table, in words.
_FORMS = {
    r"^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$": "a list of CPUs like 0-3 or 0,2,4-7",
    r"^(all|none|[+-].+)$": "all, none, or the name of an operation after + or -",
    r"^([^,]*=[^,]*)?$": "NAME=PATH, or a mapping of name and path",
    r"^(ray|mp|uni|external_launcher|.+\..+)$": "ray, mp, uni, external_launcher, or a class as package.module.Class",
}


def _path(
    loc: tuple[str | int, ...], schema: Any, *, is_of_keys: bool = False
) -> tuple[tuple[str | int, ...], tuple[str, ...]]:
    """Return pydantic's location without the names of alternatives, and the words or fields that are valid there.

    With `is_of_keys`, the words are the valid keys of the mapping there.
    """
    path: tuple[str | int, ...] = ()
    here = [schema]
    for part in loc:
        below: list[Any] = []
        field_names: set[str] = set()
        for option in _alternatives(here):
            below += _below(option, part)
            if option.get("type") == "typed-dict":
                field_names |= option["fields"].keys()
        is_unknown_field = isinstance(part, str) and bool(field_names) and not _is_tag(part)
        if below or is_unknown_field:
            path = (*path, part)
            here = below or [{"type": "fields", "expected": sorted(field_names)}]
    options = [option.get("keys_schema", {}) if is_of_keys else option for option in _alternatives(here)]
    words = [str(word) for option in options for word in option.get("expected", ())]
    return path, tuple(dict.fromkeys(words))


def _is_tag(part: str) -> bool:
    """Return whether it is pydantic's name of an alternative of a union: `constrained-int`, `literal['a','b']`."""
    return part in _TAGS or any(part.startswith(f"{tag}[") for tag in _TAGS)


_TAGS = frozenset(
    {
        "constrained-int",
        "constrained-str",
        "int",
        "str",
        "bool",
        "float",
        "literal",
        "typed-dict",
        "dict",
        "list",
        "none",
    }
)


def _alternatives(options: list[Any]) -> Iterator[dict[str, Any]]:
    for option in options:
        match option:
            case {"type": "nullable", "schema": below}:
                yield from _alternatives([below])
            case {"type": "union", "choices": choices}:
                yield from _alternatives(choices)
            case dict():
                yield option


def _below(option: dict[str, Any], part: str | int) -> list[Any]:
    match option:
        case {"type": "typed-dict", "fields": fields} if part in fields:
            return [fields[part]["schema"]]
        case {"type": "typed-dict", "extras_schema": extras} if not (isinstance(part, str) and _is_tag(part)):
            return [extras]
        case {"type": "dict", "values_schema": values} if not (isinstance(part, str) and _is_tag(part)):
            return [values]
        case {"type": "list" | "set", "items_schema": items} if isinstance(part, int):
            return [items]
        case {"type": "tuple", "items_schema": items} if isinstance(part, int):
            return [items[min(part, len(items) - 1)]]
    return []
