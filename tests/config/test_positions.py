"""Whatever is written: every leaf of a document knows its stretch of the source, and no bytes raise anything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from config.sources import SMALL, load, problems
from hypothesis import given, settings
from hypothesis import strategies as st

_KEY = st.text("abcdefghij_", min_size=1, max_size=6)
_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="$\ufeff\ufffe\uffff"))
_SCALAR = st.one_of(st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), _TEXT)
_VALUE = st.recursive(
    _SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4), st.dictionaries(_KEY, inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(value=st.dictionaries(_KEY, _VALUE, min_size=1, max_size=4), indent=st.sampled_from([1, 2, 4]))
def test_every_leaf_maps_to_the_stretch_of_the_source_that_is_its_scalar(value: dict[str, Any], indent: int) -> None:
    lines = "".join(" " * 6 + line + "\n" for line in _block(value, indent))
    text = SMALL.replace(
        'serving: {image: "vllm/vllm-tpu:v0.32.0"}\n',
        f"serving:\n  image: vllm/vllm-tpu:v0.32.0\n  args:\n    hf_overrides:\n{lines}",
    )
    profile = load(text)
    assert profile.serving.args["hf_overrides"] == value
    for path, scalar in _leaves(value, "serving.args.hf_overrides"):
        at = profile.origins[path]
        line = text.split("\n")[at.line - 1]
        assert line[at.column - 1 : at.column - 1 + at.width] == json.dumps(scalar, ensure_ascii=False)


def _block(value: Any, indent: int) -> Iterator[str]:
    """Block style with scalars in JSON's form, which is YAML's too; lists within lists in flow style."""
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{key}:"
            yield from (" " * indent + line for line in _block(item, indent))
        else:
            yield f"{key}: {json.dumps(item, ensure_ascii=False)}"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _leaves(item, f"{path}.{key}")
    else:
        yield path, value


_FRAGMENTS = st.one_of(
    st.sampled_from(["  ", "\n", "- ", "{", "}", "[", "]", ": ", "&a ", "*a", "!!str ", "? ", "|\n", ">-\n", "<<: "]),
    st.sampled_from(["'", '"', "#", "%", "@", "\t", "---\n", "...\n", "${env:A}", "$", "~", "1e9", ".inf"]),
    st.sampled_from(
        ["version: 1\n", "serving:", "args", "extends: ", "p.yaml", "tpu:\n  type: v6e-4\n", "setup: [a]\n"]
    ),
    st.sampled_from(["\u2028", "\x85", "\r", "\ufeff", "é", "🙂", "volumes:\n  /a: /b\n"]),
)


@settings(max_examples=300)
@given(content=st.binary(max_size=200))
def test_arbitrary_bytes_are_problems_and_nothing_else(content: bytes) -> None:
    assert problems(content)


@settings(max_examples=500)
@given(pieces=st.lists(_FRAGMENTS, max_size=30))
def test_arbitrary_yaml_is_problems_and_nothing_else(pieces: list[str]) -> None:
    text = "".join(pieces)
    for diagnostic in problems(text, environment={"A": "b"}):
        assert diagnostic.location is not None
        assert diagnostic.location.column >= 1


@settings(max_examples=200)
@given(path=st.text(max_size=20), value=st.text(max_size=20), line=_TEXT)
def test_arbitrary_arguments_and_lines_are_problems_and_nothing_else(path: str, value: str, line: str) -> None:
    for text, sets in (
        (SMALL, [f"{path}={value}"]),
        (SMALL, [value]),
        (SMALL + line, []),
        (SMALL, [f"health.prompt={value}"]),
    ):
        for diagnostic in problems(text, sets=sets):
            assert diagnostic.location is not None


_FIELDS = st.sampled_from(["version", "name", "model", "tpu", "serving", "secrets", "placement", "replicas", "health"])


@settings(max_examples=300)
@given(document=st.dictionaries(_FIELDS, st.one_of(st.none(), _VALUE), max_size=6))
def test_any_shape_under_any_key_is_problems_and_nothing_else(document: dict[str, Any]) -> None:
    text = yaml.safe_dump(document, allow_unicode=True)
    assert problems(text)
