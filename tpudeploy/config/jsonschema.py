"""Generate the JSON Schema of the format for editors, in draft 7, from the models."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from tpudeploy.config.schema import ProfileSpec, Section

# Where editors find the schema of profiles: SchemaStore's catalog points there.
PROFILE_ID = "https://raw.githubusercontent.com/tpudeploy/tpudeploy/main/profiles/profile.schema.json"
_TEXT = {"type": "string", "pattern": r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_INTERPOLATED = {"$ref": "#/definitions/interpolated"}
_NULL = {"type": "null"}


class _Draft7(GenerateJsonSchema):
    """Values may be an interpolation; optional keys may be null; titles and defaults are left out."""

    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def default_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])  # the descriptions have the defaults


def _for_editors(section: dict[str, Any]) -> None:
    """Let the keys of a section be an interpolation, and null where they are optional."""
    required = section.get("required", [])
    for name, key in section.get("properties", {}).items():
        kinds = [_fillable(each) for each in _alternatives(_split(key)) if each != _NULL]
        kinds += [_INTERPOLATED] if any(_is_scalar(each) for each in kinds) else []
        kinds += [] if name in required else [_NULL]
        key.update({"anyOf": kinds} if len(kinds) > 1 else kinds[0])
    del section["title"]


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    inner = schema.get("anyOf") or schema.get("oneOf")
    return [each for one in inner for each in _alternatives(one)] if inner else [schema]


def _split(key: dict[str, Any]) -> dict[str, Any]:
    """Take what is not a note out of a key's schema, and return it."""
    return {name: key.pop(name) for name in list(key) if name not in {"description", "examples"}}


def _fillable(schema: dict[str, Any]) -> dict[str, Any]:
    items = schema.get("items")
    return {**schema, "items": {"anyOf": [items, _INTERPOLATED]}} if items and _is_scalar(items) else schema


def _is_scalar(schema: dict[str, Any]) -> bool:
    return "const" in schema or schema.get("type") in {"string", "integer", "number", "boolean"}


def json_schema(form: type[Section] = ProfileSpec, title: str = "tpudeploy profile") -> dict[str, object]:
    """Return the schema of a whole profile, or of another file whose model is `form`."""
    schema = form.model_json_schema(schema_generator=_Draft7, ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs", {})
    for section in (schema, *definitions.values()):
        _for_editors(section)
    return {
        "$schema": _Draft7.schema_dialect,
        **({"$id": PROFILE_ID} if form is ProfileSpec else {}),
        "title": title,
        **schema,
        "definitions": {**definitions, "interpolated": _TEXT},
    }
