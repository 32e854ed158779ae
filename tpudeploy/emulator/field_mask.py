"""Partial responses: `fields=nodes(name,state),nextPageToken` reduces a reply to these fields.

Every method of Google's APIs takes it: it is among the common parameters of the discovery documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from tpudeploy.emulator import discovery, wire

Mask: TypeAlias = Mapping[str, "Mask"]
"""The names of fields, each with the names below it; an empty mask selects everything."""

_TOKEN = re.compile(r"\s*([\w*-]+|[,/()])")


def select_fields(query: Mapping[str, str], body: dict[str, Any], schema: str, version: str) -> dict[str, Any]:
    """Return the fields of a reply that the query asks for. Raise ApiError for one that its schema does not have."""
    text = query.get("fields") or query.get("$fields")
    if not text or not schema:
        return body
    mask = _mask(text)
    _check(mask, schema, version, "")
    cut: dict[str, Any] = _cut(mask, body)
    return cut


@cache
def _mask(text: str) -> Mask:
    words = [match[1] for match in _TOKEN.finditer(text)]
    if "".join(words) != "".join(text.split()):
        raise _invalid(text)
    words_ahead = iter([*words, ""])
    return _level(words_ahead, "", text)


def _level(words: Iterator[str], end: str, text: str) -> Mask:
    """Read names up to `end`."""
    mask: dict[str, Mask] = {}
    path: dict[str, Mask] = mask
    name = ""
    for word in words:
        if word in (end, ","):
            if name:
                path.setdefault(name, {})
            path, name = mask, ""
            if word == end:
                return mask
        elif word == "/" and name:
            path, name = path.setdefault(name, {}), ""  # type: ignore[assignment]  # made here, so it is a dict
        elif word == "(" and name:
            path[name], name = _level(words, ")", text), ""
        elif word and word not in "/()" and not name:
            name = word
        else:
            break
    raise _invalid(text)


def _check(mask: Mask, schema: str, version: str, above: str) -> None:
    properties = discovery.schemas(version)[schema].get("properties", {})
    for name, below in mask.items():
        if name == "*":
            continue
        field = properties.get(name)
        if field is None:
            raise _invalid(f"{above}{name}")
        inner = field.get("items", field).get("$ref")
        if inner is not None:
            _check(below, inner, version, f"{above}{name}/")


def _cut(mask: Mask, value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(mask, item) for item in value]
    if not mask or not isinstance(value, dict):
        return value
    if "*" in mask:
        return {name: _cut(mask["*"], each) for name, each in value.items()}
    return {name: _cut(below, value[name]) for name, below in mask.items() if name in value}


def _invalid(path: str) -> wire.ApiError:
    """Return the refusal of a field; its wording is UNVERIFIED."""
    return wire.refuse(3, f"Error expanding 'fields' parameter. Cannot find matching fields for path '{path}'.")
