"""Accept the values of flags that pydantic would accept without doubt, so that it is imported for the others alone.

The import of pydantic_core takes 140 million instructions, three times what Python takes to start, and a third of what
`validate` takes without it. Only pydantic refuses: False means that it must be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def is_plainly_valid(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a core schema accepts a JSON value, as far as that needs no conversion."""
    check = _CHECKS.get(schema["type"])
    return check is not None and check(schema, value)


def _is_number(schema: Mapping[str, Any], value: Any) -> bool:
    if type(value) is not int and not (schema["type"] == "float" and type(value) is float):
        return False
    return all(
        _BOUNDS[name](value, bound) if name in _BOUNDS else name == "type"  # an unknown constraint is not plain
        for name, bound in schema.items()
    )


_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "ge": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "le": lambda value, bound: value <= bound,
}


def _is_text(schema: Mapping[str, Any], value: Any) -> bool:
    return type(value) is str and len(schema) == 1


def _is_word(schema: Mapping[str, Any], value: Any) -> bool:
    return type(value) is str and value in schema["expected"]


def _is_list(schema: Mapping[str, Any], value: Any) -> bool:
    is_plain = schema.keys() <= {"type", "items_schema"}
    return is_plain and type(value) is list and all(is_plainly_valid(schema["items_schema"], item) for item in value)


def _is_fields(schema: Mapping[str, Any], value: Any) -> bool:
    fields = schema["fields"]
    if type(value) is not dict or not value.keys() <= fields.keys():
        return False
    if any(field.get("required", True) and name not in value for name, field in fields.items()):
        return False
    return all(is_plainly_valid(fields[name]["schema"], item) for name, item in value.items())


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], Any], bool]] = {
    "any": lambda _, __: True,
    "bool": lambda _, value: type(value) is bool,
    "choices": _is_word,
    "float": _is_number,
    "int": _is_number,
    "keyword": _is_word,
    "list": _is_list,
    "literal": _is_word,
    "nullable": lambda schema, value: value is None or is_plainly_valid(schema["schema"], value),
    "str": _is_text,
    "typed-dict": _is_fields,
    "union": lambda schema, value: any(is_plainly_valid(choice, value) for choice in schema["choices"]),
}
