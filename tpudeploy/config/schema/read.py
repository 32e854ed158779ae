"""Read the tree of a profile as its sections declare it: the section, or every value that has another type or form.

It knows the annotations that the files of this folder use: str, int, float, bool, `tuple[T, ...]`, `dict[str, T]`,
Literal, Any, sections, `T | None`, and text or a list (`Text | Words`). `Annotated` adds a form or limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from tpudeploy.config.nodes import Path
from tpudeploy.config.schema.base import Invalid, Read, Section

S = TypeVar("S", bound=Section)


def read_section(section: type[S], tree: Any) -> S:
    """Return the section. Raise Invalid with every finding, in the order of the keys."""
    if not isinstance(tree, Mapping):
        raise Invalid.because("mapping")
    readers = _READERS[section]
    values: dict[str, Any] = {}
    findings: list[tuple[str, Path, Any]] = []
    for name, key in section.keys.items():
        if name in tree:
            try:
                values[name] = readers[name](tree[name])
            except Invalid as invalid:
                findings += invalid.below(name)
        elif key.is_required:
            findings.append(("missing", (name,), None))
    findings += [("unknown", (name,), None) for name in tree if name not in section.keys]
    if findings:
        raise Invalid(*findings)
    return section(values)


_sections: dict[tuple[type[Section], str], Section] = {}
_MOST_SECTIONS = 10_000


def _read_once(section: type[S], tree: Any) -> Section:
    """Return the section. The profiles of a fleet write most sections alike: each of them is read once, and shared."""
    key = section, repr(tree)
    same = _sections.get(key)
    if same is None:
        same = read_section(section, tree)
        if len(_sections) >= _MOST_SECTIONS:  # a server reads the profiles of many days
            _sections.clear()
        _sections[key] = same
    return same


class _Readers(dict[str, Read]):
    """The readers of a section's keys, each made when the key is first read: a profile sets a third of them."""

    def __init__(self, section: type[Section]) -> None:
        self._section = section

    def __missing__(self, name: str) -> Read:
        key = self._section.keys[name]
        self[name] = read = key.reader(reader_of(key.annotation))
        return read


class _Sections(dict[type, _Readers]):
    def __missing__(self, section: type[Section]) -> _Readers:
        self[section] = readers = _Readers(section)
        return readers


_READERS = _Sections()


def reader_of(annotation: Any) -> Read:
    """Return the function that reads a value of this type, or raises Invalid."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *additions = get_args(annotation)
        read = reader_of(base)
        for addition in additions:
            read = addition.reader(read)
        return read
    if origin in (Union, UnionType):
        return _union(annotation)
    if origin is Literal:
        return _choice(get_args(annotation))
    if origin is tuple:
        return _list(reader_of(get_args(annotation)[0]))
    if origin is dict:
        return _mapping(reader_of(get_args(annotation)[1]))
    if issubclass(annotation, Section):
        return lambda tree: _read_once(annotation, tree)
    return _any  # a quantity, which is read as its annotation says


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid.because("text")
    return value


def _int(value: object) -> int:
    if type(value) is not int:  # the exact type excludes true
        raise Invalid.because("int")
    return value


def _float(value: object) -> float:
    if type(value) not in (int, float):
        raise Invalid.because("float")
    try:
        return float(value)  # type: ignore[arg-type]  # an int or a float
    except OverflowError:
        raise Invalid.because("float") from None


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise Invalid.because("bool")
    return value


def _any(value: object) -> object:
    return value


_SCALARS: Mapping[Any, Read] = {str: _text, int: _int, float: _float, bool: _bool, Any: _any}


def _choice(choices: tuple[str, ...]) -> Read:
    def read_choice(value: object) -> object:
        if not isinstance(value, str) or value not in choices:
            raise Invalid.because("choice", choices)
        return value

    return read_choice


def _union(annotation: Any) -> Read:
    """Read an optional value; and text or a list, where anything but text is read as the list."""
    alternatives = get_args(annotation)
    first, *others = [reader_of(each) for each in alternatives if each is not NoneType]
    is_optional = NoneType in alternatives

    def read_alternative(value: object) -> object:
        if value is None and is_optional:
            return None
        return others[0](value) if others and not isinstance(value, str) else first(value)

    return read_alternative


def _list(read_item: Read) -> Read:
    def read_list(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise Invalid.because("list")
        items, findings = _read_each(read_item, enumerate(value))
        if findings:
            raise Invalid(*findings)
        return tuple(items.values())

    return read_list


def _mapping(read_item: Read) -> Read:
    def read_mapping(value: object) -> dict[Any, object]:
        if not isinstance(value, Mapping):
            raise Invalid.because("mapping")
        items, findings = _read_each(read_item, value.items())
        if findings:
            raise Invalid(*findings)
        return items

    return read_mapping


def _read_each(read_item: Read, items: Any) -> tuple[dict[Any, object], list[tuple[str, Path, Any]]]:
    values: dict[Any, object] = {}
    findings: list[tuple[str, Path, Any]] = []
    for key, item in items:
        try:
            values[key] = read_item(item)
        except Invalid as invalid:
            findings += invalid.below(key)
    return values, findings
