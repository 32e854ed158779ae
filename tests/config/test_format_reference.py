"""The schema is the reference: every key is described, every code explained, and editors are told the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from config.sources import SMALL, load
from jsonschema import Draft7Validator
from pydantic import ValidationError

from tpudeploy import config
from tpudeploy.catalog import flags
from tpudeploy.config import codes
from tpudeploy.config.jsonschema import json_schema
from tpudeploy.config.keys import FLAG_OF_KEY, SECRET_OF_FLAG, VARIABLE_OF_KEY, all_keys, fields_at
from tpudeploy.domain import errors

_FOLDER = Path(config.__file__).parent


@pytest.mark.parametrize("path", list(all_keys()), ids=".".join)
def test_every_key_says_what_it_means_and_what_it_is_by_default(path: tuple[str, ...]) -> None:
    field = (fields_at(path[:-1]) or {})[path[-1]]
    assert field.description
    assert re.search(r"Default: |Required", field.description)


@pytest.mark.parametrize("path", list(all_keys()), ids=".".join)
def test_every_example_of_a_key_is_of_its_type(path: tuple[str, ...]) -> None:
    definitions = json_schema()
    field = (fields_at(path[:-1]) or {})[path[-1]]
    schema: object = definitions
    for part in path:
        schema = _property(schema, part, definitions)
    assert isinstance(schema, dict)
    for example in field.examples or ():
        assert not list(Draft7Validator({**schema, "definitions": definitions["definitions"]}).iter_errors(example))


def _property(schema: object, key: str, whole: dict[str, object]) -> object:
    assert isinstance(schema, dict)
    options = [schema, *schema.get("anyOf", ())]
    sections = whole["definitions"]
    assert isinstance(sections, dict)
    for option in options:
        section = sections[option["$ref"].rpartition("/")[2]] if "$ref" in option else option
        if key in section.get("properties", {}):
            return section["properties"][key]
    raise AssertionError(key)


def _codes_used() -> Iterator[str]:
    # Own scripts and templates are read by an adapter, sources of a profile by a feature.
    folders = (_FOLDER, _FOLDER.parent / "adapters", _FOLDER.parent / "features")
    for file in (each for folder in folders for each in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "codes":
                value = getattr(codes, node.attr)
                if isinstance(value, str):
                    yield value


def test_every_code_that_is_raised_is_explained_and_every_explained_code_is_raised() -> None:
    by_errors = {errors.ConfigError.code, errors.ProfileNotFound.code}
    assert set(_codes_used()) | by_errors == set(codes.EXPLANATIONS)


def test_no_two_problems_share_a_code() -> None:
    constants = [value for value in vars(codes).values() if isinstance(value, str) and re.fullmatch(r"TPU\d{4}", value)]
    assert len(constants) == len(set(constants)) == len(codes.EXPLANATIONS)


def test_the_schema_for_editors_is_draft_7_and_agrees_with_the_parser() -> None:
    schema = json_schema()
    Draft7Validator.check_schema(schema)
    validator = Draft7Validator(schema)
    good = SMALL + "replicas: ${env:N}\nplacement: {zones: [us-east5-b, '${env:Z}'], reservation: null}\n".replace(
        "'", '"'
    )
    assert not list(validator.iter_errors(yaml.safe_load(good)))
    for bad in ("replicas: 0\n", "replica: 1\n", "health: {timeout: 45}\n", "placement: {zones: [x]}\n"):
        assert list(validator.iter_errors(yaml.safe_load(SMALL + bad)))


def test_every_key_that_stands_for_a_flag_names_one_that_vllm_has() -> None:
    keys = set(all_keys())
    for key, name in FLAG_OF_KEY.items():
        flag = flags.find(name)
        assert flag is not None
        assert (flag.name, key in keys) == (name, True)
    assert set(VARIABLE_OF_KEY) <= keys
    assert all(flags.find(name) for name in ("api-key",))


def test_flags_that_take_a_secret_name_the_variable_that_vllm_reads_instead() -> None:
    assert SECRET_OF_FLAG["api-key"] == "VLLM_API_KEY"


def test_a_profile_cannot_be_changed() -> None:
    spec = load(SMALL)
    with pytest.raises(ValidationError, match="replicas"):
        spec.replicas = 2
