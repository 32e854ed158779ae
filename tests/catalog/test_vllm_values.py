"""The table of values is as the dump wrote it, and each row of it can be used."""

from __future__ import annotations

import hashlib
import json

from pydantic_core import SchemaValidator

from tpudeploy.catalog import _vllm_flags, _vllm_values, flags, values

ROWS = _vllm_values.SCHEMAS.strip().splitlines()


def test_nobody_edited_the_table_after_it_was_dumped() -> None:
    text = "\n".join([_vllm_values.VARIABLES.strip(), *ROWS])

    assert hashlib.sha256(text.encode()).hexdigest() == _vllm_values.DIGEST


def test_flags_and_values_are_those_of_one_version() -> None:
    assert _vllm_values.VLLM_VERSION == _vllm_flags.VLLM_VERSION == flags.VLLM_VERSION


def test_each_row_is_a_flag_with_a_schema_that_pydantic_can_validate_with() -> None:
    names = [json.loads(row)[0] for row in ROWS]

    assert names == sorted(set(names))
    for name in names:
        # A few are fields of the configuration without a flag: nothing asks for their rows.
        schema = values.schema(name)
        assert schema is not None
        SchemaValidator(values.complete_schema(schema))
