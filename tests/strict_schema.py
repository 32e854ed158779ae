"""Documents held against the schemas that the product prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from command_line import CommandLine, Result
from jsonschema import Draft7Validator


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def strict(at: CommandLine, what: str) -> Draft7Validator:
    """The schema as it is printed, and no key beyond it: what is new here is to be in it."""
    schema = json.loads(at.run("schema", what).out)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if "properties" in schema else closed
