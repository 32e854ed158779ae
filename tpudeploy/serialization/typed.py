"""Read JSON into frozen data by the annotations of its fields: the reverse of domain/serialization.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tpudeploy.domain.deployment import Script

T = TypeVar("T")
_UNIONS = (Union, UnionType)


def read(kind: type[T], tree: Any) -> T:
    """Return the value of this class. Raise TypeError, ValueError or KeyError if `tree` is not a complete one."""
    value: T = _read(kind, tree)
    return value


def _read(hint: Any, tree: Any) -> Any:
    if hint is Any:
        return tree
    origin = get_origin(hint)
    if origin in _UNIONS:
        return _one_of(get_args(hint), tree)
    if origin is tuple:
        return _tuple(get_args(hint), tree)
    if origin is not None and issubclass(origin, Mapping):
        key_hint, value_hint = get_args(hint)
        return {_read(key_hint, key): _read(value_hint, each) for key, each in _a(dict, tree).items()}
    if is_dataclass(hint):
        return _data(hint, tree)
    if issubclass(hint, Enum):
        return hint(tree)
    if hint is Script:
        return Script(_a(str, tree))
    return _scalar(hint, tree)


def _one_of(hints: tuple[Any, ...], tree: Any) -> Any:
    """Return a value of `X | None`, of the first class whose fields fit, or of any JSON type."""
    kinds = {get_origin(h) or h for h in hints}
    if {list, dict} <= kinds:
        return tree  # domain.deployment.Json
    if tree is None and NoneType in kinds:
        return None
    for hint in hints:
        if is_dataclass(hint) and _fits(hint, tree):
            return _data(hint, tree)
    scalars = [hint for hint in hints if hint is not NoneType and not is_dataclass(hint)]
    if len(scalars) != 1:
        raise TypeError(f"{tree!r} is not one of {', '.join(map(str, hints))}")
    return _read(scalars[0], tree)


def _fits(kind: Any, tree: Any) -> bool:
    """Return whether an object has only fields of this class, and each one without a default."""
    return isinstance(tree, dict) and _required(kind) <= tree.keys() <= _hints(kind).keys()


def _tuple(hints: tuple[Any, ...], tree: Any) -> tuple[Any, ...]:
    rows = _a(list, tree)
    if hints[-1:] == (...,):
        return tuple(_read(hints[0], row) for row in rows)
    return tuple(_read(hint, row) for hint, row in zip(hints, rows, strict=True))


def _data(kind: Any, tree: Any) -> Any:
    hints = _hints(kind)
    return kind(**{name: _read(hints[name], value) for name, value in _a(dict, tree).items()})


def _scalar(hint: Any, tree: Any) -> Any:
    if hint is float:
        return float(_a((int, float), tree))
    if issubclass(hint, str):
        return hint(_a(str, tree))
    return _a(hint, tree)


def _a(kind: Any, tree: Any) -> Any:
    """Return `tree` if it is a `kind`. A boolean is not a number here."""
    if not isinstance(tree, kind) or (isinstance(tree, bool) and kind is not bool):
        raise TypeError(f"{tree!r} is not a {kind}")
    return tree


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the annotations of a class. Evaluating them is slow, so each class is evaluated once."""
    return get_type_hints(kind)


@cache
def _required(kind: Any) -> frozenset[str]:
    return frozenset(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)
