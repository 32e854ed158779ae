"""Generate the JSON Schema of the format for editors, in draft 7, from the models."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from tpudeploy.config.schema import ProfileSpec

_TEXT = {"type": "string", "pattern": r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_INTERPOLATED = {"$ref": "#/definitions/interpolated"}
_NULL = {"type": "null"}
_NOTES = ("description", "examples")


class _Draft7(GenerateJsonSchema):
    """Pydantic writes the 2020-12 dialect; in what it uses here, only the name of `$defs` differs."""

    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Omit defaults: the descriptions have them, in the form that a person writes."""
        return self.generate_inner(schema["schema"])


def json_schema() -> dict[str, object]:
    """Return the schema of a whole profile. In a base or an overlay, editors report required keys as missing."""
    schema = ProfileSpec.model_json_schema(ref_template="#/definitions/{model}", schema_generator=_Draft7)
    definitions = schema.pop("$defs")
    for section in (schema, *definitions.values()):
        section.pop("title", None)
        required = section.get("required", ())
        for key, value in section.get("properties", {}).items():
            section["properties"][key] = _key_schema(value, optional=key not in required)
    definitions["interpolated"] = _TEXT
    return {"$schema": _Draft7.schema_dialect, "title": "tpudeploy profile", **schema, "definitions": definitions}


def _key_schema(schema: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    """Return what a key may have: its value, text with an interpolation, or null, which selects the default."""
    notes: dict[str, Any] = {note: schema.pop(note) for note in _NOTES if note in schema}
    schema.pop("title", None)
    choices = [_fillable(choice) for choice in _alternatives(schema) if choice != _NULL]
    choices += [_INTERPOLATED] if any(_is_scalar(choice) for choice in choices) else []
    choices += [_NULL] if optional else []
    return {**notes, "anyOf": choices} if len(choices) > 1 else {**notes, **choices[0]}


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives, flattened: for pydantic, an optional union is one of (any of them, null)."""
    nested = schema.get("anyOf") or schema.get("oneOf")
    return [choice for inner in nested for choice in _alternatives(inner)] if nested else [schema]


def _fillable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema, with an interpolation allowed for each item of a list."""
    items = schema.get("items")
    return {**schema, "items": {"anyOf": [items, _INTERPOLATED]}} if items and _is_scalar(items) else schema


def _is_scalar(schema: dict[str, Any]) -> bool:
    return "const" in schema or schema.get("type") in {"string", "integer", "number", "boolean"}
