"""Conversion of frozen data to plain JSON values, which every `.to_dict()` of a result uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from tpudeploy.domain.deployment import Script


def to_json(value: Any) -> Any:
    """Return dataclasses and mappings as dicts, and tuples as lists. Properties are not included."""
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value) if not field.metadata}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return str(value) if isinstance(value, Script) else value
