"""What is accepted without pydantic, pydantic accepts: the values that are tried on the real vLLM, at every schema."""

from __future__ import annotations

import json
from typing import Any

from oracle.flag_samples import of_schema
from pydantic_core import SchemaValidator, ValidationError

from tpudeploy.catalog import releases, values
from tpudeploy.catalog.values import is_plainly_valid

NAMES = list(releases.table(None)["values"])
OTHERS: tuple[Any, ...] = (None, True, 0, -1, 2**70, 0.5, "", "text", "auto", [], [1], ["text", None], {}, {"a": 1})


def is_valid(validator: SchemaValidator, value: Any) -> bool:
    try:
        validator.validate_json(json.dumps(value))
    except ValidationError:
        return False
    return True


def test_pydantic_refuses_nothing_that_is_plainly_valid() -> None:
    accepted = tried = 0
    for name in NAMES:
        schema = dict(values.schema(name) or {})
        validator = SchemaValidator(values.complete_schema(schema))
        for value in (*of_schema(schema, name), *OTHERS):
            is_accepted = is_plainly_valid(schema, value)
            assert not is_accepted or is_valid(validator, value), (name, value)
            accepted, tried = accepted + is_accepted, tried + is_valid(validator, value)
    assert accepted > 0.8 * tried, "the others need a conversion"
