"""JSON back into frozen data, by what its fields are annotated with: the other way of domain/serialization.py."""

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


def read(of: type[T], tree: Any) -> T:
    """Raise TypeError, ValueError or KeyError for what is not a whole and well-formed `of`."""
    known: T = _read(of, tree)
    return known


def _read(hint: Any, tree: Any) -> Any:
    if hint is Any:
        return tree
    origin = get_origin(hint)
    if origin in _UNIONS:
        return _one_of(get_args(hint), tree)
    if origin is tuple:
        return _tuple(get_args(hint), tree)
    if origin is not None and issubclass(origin, Mapping):
        _, value = get_args(hint)
        return {str(key): _read(value, each) for key, each in _a(dict, tree).items()}
    if is_dataclass(hint):
        return _data(hint, tree)
    if issubclass(hint, Enum):
        return hint(tree)
    if hint is Script:
        return Script(_a(str, tree))
    return _scalar(hint, tree)


def _one_of(hints: tuple[Any, ...], tree: Any) -> Any:
    """`X | None`, one class of several by its fields, or any JSON value."""
    kinds = {get_origin(h) or h for h in hints}
    if {list, dict} <= kinds:
        return tree  # domain.deployment.Json
    if tree is None and NoneType in kinds:
        return None
    classes: list[Any] = [h for h in hints if is_dataclass(h)]
    for each in classes:
        if isinstance(tree, dict) and tree.keys() <= _hints(each).keys() and _needed(each) <= tree.keys():
            return _data(each, tree)
    rest = [h for h in hints if h is not NoneType and not is_dataclass(h)]
    if len(rest) != 1:
        raise TypeError(f"{tree!r} is none of {', '.join(map(str, hints))}")
    return _read(rest[0], tree)


def _tuple(hints: tuple[Any, ...], tree: Any) -> tuple[Any, ...]:
    rows = _a(list, tree)
    if hints[-1:] == (...,):
        return tuple(_read(hints[0], row) for row in rows)
    return tuple(_read(hint, row) for hint, row in zip(hints, rows, strict=True))


def _data(of: Any, tree: Any) -> Any:
    hints = _hints(of)
    return of(**{name: _read(hints[name], value) for name, value in _a(dict, tree).items()})


def _scalar(hint: Any, tree: Any) -> Any:
    if hint is float:
        return float(_a((int, float), tree))
    if issubclass(hint, str):
        return hint(_a(str, tree))
    return _a(hint, tree)


def _a(kind: Any, tree: Any) -> Any:
    """`tree`, which is a `kind`. True is no number here."""
    if not isinstance(tree, kind) or (isinstance(tree, bool) and kind is not bool):
        raise TypeError(f"{tree!r} is no {kind}")
    return tree


@cache
def _hints(of: Any) -> Mapping[str, Any]:
    """Evaluating annotations is dear."""
    return get_type_hints(of)


@cache
def _needed(of: Any) -> frozenset[str]:
    return frozenset(f.name for f in fields(of) if f.default is MISSING and f.default_factory is MISSING)
