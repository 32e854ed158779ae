"""The tables of values and of variables are as the dumps wrote them, and each row of them can be used."""

from __future__ import annotations

import hashlib
import json

import pytest
from pydantic_core import SchemaValidator

from tpudeploy.catalog import _vllm_flags, _vllm_values, _vllm_variables, flags, values, variables

ROWS = _vllm_values.SCHEMAS.strip().splitlines()


@pytest.mark.parametrize(
    ("text", "digest"),
    [(_vllm_values.SCHEMAS, _vllm_values.DIGEST), (_vllm_variables.VARIABLES, _vllm_variables.DIGEST)],
    ids=["values", "variables"],
)
def test_nobody_edited_the_table_after_it_was_dumped(text: str, digest: str) -> None:
    assert hashlib.sha256(text.strip().encode()).hexdigest() == digest


def test_flags_values_and_variables_are_those_of_one_version() -> None:
    versions = {_vllm_values.VLLM_VERSION, _vllm_flags.VLLM_VERSION, _vllm_variables.VLLM_VERSION}
    assert versions == {flags.VLLM_VERSION}


def test_a_variable_without_a_rule_takes_any_value_and_the_others_refuse_nonsense() -> None:
    for row in _vllm_variables.VARIABLES.strip().splitlines():
        name, *rule = row.split()
        assert (variables.expected_instead(name, "no such value") is not None) == bool(rule)


def test_each_row_is_a_flag_with_a_schema_that_pydantic_can_validate_with() -> None:
    names = [json.loads(row)[0] for row in ROWS]

    assert names == sorted(set(names))
    for name in names:
        # A few are fields of the configuration without a flag: nothing asks for their rows.
        schema = values.schema(name)
        assert schema is not None
        SchemaValidator(values.complete_schema(schema))
