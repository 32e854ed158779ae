"""Partial responses: `fields=nodes(name,state),nextPageToken` leaves out of a reply what it does not name.

Every method of Google's APIs takes it: it stands among the common parameters of the discovery documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from tpudeploy.emulator import discovery, wire
from tpudeploy.emulator.call import Call

Mask: TypeAlias = Mapping[str, "Mask"]
"""What is named, and below it what; nothing below is all."""

_TOKEN = re.compile(r"\s*([\w*-]+|[,/()])")


def selected(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    """Of the reply what was asked for. Raise Refusal for a field that there is not."""
    written = call.query.get("fields") or call.query.get("$fields")
    if not written:
        return body
    mask = _mask(written)
    _check(mask, discovery.response(call.version, *call.method.split(".")), call.version, "")
    cut: dict[str, Any] = _cut(mask, body)
    return cut


@cache
def _mask(written: str) -> Mask:
    words = [match[1] for match in _TOKEN.finditer(written)]
    if "".join(words) != "".join(written.split()):
        raise _invalid(written)
    left = iter([*words, ""])
    return _level(left, "", written)


def _level(words: Iterator[str], end: str, written: str) -> Mask:
    """Names up to `end`."""
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
            path[name], name = _level(words, ")", written), ""
        elif word and word not in "/()" and not name:
            name = word
        else:
            break
    raise _invalid(written)


def _check(mask: Mask, schema: str, version: str, above: str) -> None:
    properties = discovery.schemas(version)[schema].get("properties", {})
    for name, below in mask.items():
        if name == "*":
            continue
        known = properties.get(name)
        if known is None:
            raise _invalid(f"{above}{name}")
        inner = known.get("items", known).get("$ref")
        if inner is not None:
            _check(below, inner, version, f"{above}{name}/")


def _cut(mask: Mask, value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(mask, item) for item in value]
    if not mask or "*" in mask or not isinstance(value, dict):
        return value
    return {name: _cut(below, value[name]) for name, below in mask.items() if name in value}


def _invalid(path: str) -> wire.Refusal:
    """The wording is UNVERIFIED."""
    return wire.refuse(3, f"Error expanding 'fields' parameter. Cannot find matching fields for path '{path}'.")
