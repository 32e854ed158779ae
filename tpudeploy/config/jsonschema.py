"""Generate the JSON Schema of the format for editors, in draft 7, from the sections."""

from __future__ import annotations

from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tpudeploy.config.schema import ProfileSpec
from tpudeploy.config.schema.base import JsonSchema, Key, Section

# Where editors find the schema of profiles: SchemaStore's catalog points there.
PROFILE_ID = "https://raw.githubusercontent.com/tpudeploy/tpudeploy/main/profiles/profile.schema.json"
_TEXT = {"type": "string", "pattern": r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_INTERPOLATED = {"$ref": "#/definitions/interpolated"}
_NULL = {"type": "null"}
_ANY = "JsonValue"
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema(form: type[Section] = ProfileSpec, title: str = "tpudeploy profile") -> dict[str, object]:
    """Return the schema of a whole profile, or of another file whose section is `form`.

    In a base or an overlay of a profile, editors report required keys as missing.

    Defaults are left out: the descriptions have them, in the form that a person writes.
    """
    definitions: dict[str, JsonSchema] = {_ANY: {}}
    whole = _of_section(form, definitions)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **({"$id": PROFILE_ID} if form is ProfileSpec else {}),
        "title": title,
        **whole,
        "definitions": {**dict(sorted(definitions.items())), "interpolated": _TEXT},
    }


def _of_section(section: type[Section], definitions: dict[str, JsonSchema]) -> JsonSchema:
    """Return the schema of a section, and add those of the sections in it to the definitions."""
    required = [name for name, key in section.keys.items() if key.is_required]
    schema: JsonSchema = {"additionalProperties": False, "required": required, "type": "object"}
    if section.__doc__:
        schema["description"] = cleandoc(section.__doc__)
    section.adjust_json_schema(schema)
    required = schema.get("required", [])
    schema["properties"] = {
        name: _of_key(key, definitions, optional=name not in required) for name, key in section.keys.items()
    }
    return {name: schema[name] for name in sorted(schema) if schema[name] != []}


def _of_key(key: Key, definitions: dict[str, JsonSchema], *, optional: bool) -> JsonSchema:
    """Return what a key may have: its value, text with an interpolation, or null, which selects the default."""
    alternatives = [_sorted(key.json_schema(each)) for each in _alternatives(key.annotation, definitions)]
    choices = [_fillable(each) for each in alternatives]
    choices += [_INTERPOLATED] if any(_is_scalar(choice) for choice in choices) else []
    choices += [_NULL] if optional else []
    notes: JsonSchema = {"description": key.description}
    if key.examples:
        notes["examples"] = key.examples
    return {**notes, "anyOf": choices} if len(choices) > 1 else {**notes, **choices[0]}


def _alternatives(annotation: Any, definitions: dict[str, JsonSchema]) -> list[JsonSchema]:
    """Return the schemas of the values that a type may have, without null, which any optional key may have."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        each = [alternative for alternative in get_args(annotation) if alternative is not NoneType]
        return [schema for alternative in each for schema in _alternatives(alternative, definitions)]
    schema = _of_type(annotation, definitions)
    alternatives: list[JsonSchema] = schema.get("anyOf", [schema])
    return alternatives


def _of_type(annotation: Any, definitions: dict[str, JsonSchema]) -> JsonSchema:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return {"$ref": f"#/definitions/{_ANY}"}
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if origin is Annotated:
        schema = _alternatives(arguments[0], definitions)[0]
        for addition in arguments[1:]:
            schema = addition.json_schema(schema)
        return schema
    if origin is Literal:
        return {"type": "string", **({"enum": [*arguments]} if len(arguments) > 1 else {"const": arguments[0]})}
    if origin is tuple:
        return {"type": "array", "items": _sorted(_of_type(arguments[0], definitions))}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(arguments[1], definitions)}
    if not issubclass(annotation, Section):
        return {}  # a quantity, which its annotation describes
    definitions[annotation.__name__] = _of_section(annotation, definitions)
    return {"$ref": f"#/definitions/{annotation.__name__}"}


def _sorted(schema: JsonSchema) -> JsonSchema:
    return dict(sorted(schema.items()))


def _fillable(schema: JsonSchema) -> JsonSchema:
    """Return the schema, with an interpolation allowed for each item of a list."""
    items = schema.get("items")
    return {**schema, "items": {"anyOf": [items, _INTERPOLATED]}} if items and _is_scalar(items) else schema


def _is_scalar(schema: JsonSchema) -> bool:
    return "const" in schema or schema.get("type") in {"string", "integer", "number", "boolean"}
