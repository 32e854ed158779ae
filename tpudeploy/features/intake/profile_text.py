"""Write a profile with comments from values by key. Values of another tool are text: a dollar in one stays a dollar."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tpudeploy.cli.new_profile import with_end
from tpudeploy.features.intake.source import Note, sentences_by_fate

_WIDTH = 116
_ORDER = ("model", "tpu", "serving", "secrets", "placement", "replicas", "lifecycle", "health")
_BLOCKS = frozenset({("serving", "args"), ("serving", "env"), ("serving", "volumes"), ("serving", "setup")})
Path = tuple[str, ...]


def profile_text(
    tree: Mapping[str, Any], comments: Mapping[Path, str], *, head: Sequence[str], notes: Sequence[Note]
) -> str:
    """Return the text. `head` are sentences about the profile, `notes` what it doesn't have of its source."""
    lines = ["# yaml-language-server: $schema=profile.schema.json"]
    for sentence in head:
        lines += textwrap.wrap(_flat(sentence), _WIDTH, initial_indent="# ", subsequent_indent="# ")
    for fate, sentences in sentences_by_fate(notes).items():
        lines += ["#", f"# {fate}:"]
        for sentence in sentences:
            lines += textwrap.wrap(_flat(sentence), _WIDTH, initial_indent="# - ", subsequent_indent="#   ")
    lines += ["version: 1", f"name: {tree['name']}"]
    for section in _ORDER:
        if section in tree:
            value = tree[section]
            lines += [
                "",
                *(_section((section,), value, comments) if isinstance(value, dict) else [f"{section}: {value}"]),
            ]
    return with_end("\n".join(lines) + "\n")


def _section(path: Path, value: Mapping[str, Any], comments: Mapping[Path, str]) -> Iterator[str]:
    indent = "  " * (len(path) - 1)
    yield f"{indent}{_key(path[-1])}:"
    for key, each in value.items():
        own = (*path, key)
        if own in _BLOCKS and each and isinstance(each, dict):
            yield from _section(own, each, comments)
        elif own in _BLOCKS and each:
            yield f"{indent}  {key}:"
            yield from (f"{indent}    - {as_value(item)}" for item in each)
        else:
            line = f"{indent}  {_key(key)}: {as_value(each)}"
            comment = _flat(comments.get(own, ""))
            yield f"{line}   # {comment}" if comment else line


def as_value(value: Any) -> str:
    """Return a value as one line of YAML."""
    if "\n" in repr(value).replace("\\n", "\n"):
        return json.dumps(_escaped(value), ensure_ascii=False)  # JSON is YAML, on one line
    text = yaml.safe_dump(
        _escaped(value), default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _key(key: str) -> str:
    return as_value(key) if key else "''"


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return value.replace("$", "$$")
        case dict():
            return {key: _escaped(each) for key, each in value.items()}
        case list() | tuple():
            return [_escaped(each) for each in value]
    return value


def _flat(text: str) -> str:
    """Return text that may stand in a comment: on one line, without characters that end it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
