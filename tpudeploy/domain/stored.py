"""Marks of data that documents hold: how its values are read. pydantic calls them, and nothing here imports it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

# The key that names the class of a value which may be of several.
TAG = "state"
UNPRINTED = {"is printed": False}


def read_with(parse: Callable[[Any], Any], schema: Any, when: str = "after") -> Any:
    """Return the schema of pydantic that calls `parse` after a value is read with `schema`, or before that."""
    return {"type": f"function-{when}", "function": {"type": "no-info", "function": parse}, "schema": schema}


def tag(kind: type) -> str:
    return kind.__name__.lower()


class AsIs:
    """Marks JSON that is read as it is."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> Any:
        return {"type": "any"}


class NamePattern:
    """Marks a name that may become a file, a resource or a part of a URL, or "" without one."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return read_with(self._check, handler(source))

    def _check(self, name: str | None) -> str | None:
        if name and (not self._pattern.fullmatch(name) or ".." in name):
            raise ValueError(f"{name!r} is not a name of ours")
        return name


class Tagged:
    """Marks a union of classes that a document tells apart by the tag of each."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        choices = {
            tag(kind): read_with(_without_tag, handler.generate_schema(kind), "before") for kind in get_args(source)
        }
        return {"type": "tagged-union", "discriminator": _tag_of, "choices": choices}


def _tag_of(tree: Any) -> str:
    return str(tree.get(TAG)) if isinstance(tree, Mapping) else ""


def _without_tag(tree: Any) -> Any:
    return {key: value for key, value in tree.items() if key != TAG}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue:
    """What a state holds. `more` are the keys of a newer version: they are written back as long as the thing exists.

    Every version writes the keys of `ALWAYS`: a document without one of them is damaged.
    """

    ALWAYS: ClassVar[frozenset[str]] = frozenset()
    more: Mapping[str, Any] = field(default_factory=dict, metadata=UNPRINTED)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        # The reference moves to the outer schema: pydantic takes it for every further place of this class.
        inner = dict(handler.resolve_ref_schema(handler(source)))
        return {**read_with(cls._sorted, inner, "before"), "ref": inner.pop("ref")}

    @classmethod
    def _sorted(cls, tree: Any) -> Any:
        """Return an object whose unknown keys are in `more`, and whose lists are tuples."""
        if not isinstance(tree, dict):
            return tree
        if not tree.keys() >= cls.ALWAYS:
            raise ValueError(f"it has no {' and no '.join(sorted(cls.ALWAYS - tree.keys()))}")
        known_names = cls.__dataclass_fields__.keys() - {"more"}
        known = {key: tuple(v) if isinstance(v, list) else v for key, v in tree.items() if key in known_names}
        return {**known, "more": {key: value for key, value in tree.items() if key not in known_names}}
