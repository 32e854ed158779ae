"""Frozen data as the plain values that JSON knows: what every `.to_dict()` of a result is made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from tpudeploy.domain.script import Script


def tree(of: Any) -> Any:
    """Dataclasses and mappings become dicts, tuples become lists; properties are not part of it."""
    if is_dataclass(of):
        return {field.name: tree(getattr(of, field.name)) for field in fields(of)}
    if isinstance(of, Mapping):
        return {key: tree(value) for key, value in of.items()}
    if isinstance(of, tuple | list):
        return [tree(value) for value in of]
    return str(of) if isinstance(of, Script) else of
