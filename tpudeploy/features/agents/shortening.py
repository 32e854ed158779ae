"""Cut an answer to a number of bytes, from the outside in: every entry keeps its facts before one keeps its details."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tpudeploy.cli.documents import Document

MOST_BYTES = 4000  # of an answer, unless it is called for more
LEAST_LIMIT, GREATEST_LIMIT = 1000, 10_000_000  # of `max_bytes`
_KEY = "left_out"
_NOTE = 300  # bytes for the note of what was left out, at first
_TRIES = 6  # with less room each, where the note or the shares were longer than that
_MOST_PARTS = 6  # that the note names
_EMPTY = 4  # bytes of a detail of which nothing is left
_SHORT = 160  # bytes of a text that is a fact rather than a detail
_GAP = 50  # bytes of the words between a text's beginning and its end
_TAIL = 0.3  # the share of a text's end: the totals of a plan and the cause of a log are there


def shortened(document: Document, most: int, ask: str) -> Document:
    """Return a document of at most `most` bytes as JSON. A shorter one says under `left_out` what is missing.

    `ask` says how to get the whole, with `{bytes}` for its size. Every key of the document stays.
    """
    whole = size(document)
    if whole <= most:
        return document
    room = most - _NOTE
    for number in range(1, _TRIES + 1):
        cuts = _Cuts()
        fitted = _mapping(document, room, "", cuts)
        note = {"whole_bytes": whole, "parts": cuts.phrases(), "hint": ask.format(bytes=whole + _NOTE)}
        result = {**fitted, _KEY: note}
        beyond = size(result) - most
        if beyond <= 0:
            break
        room = max(0, room - number * beyond - 10)
    return result


def shortened_text(text: str, most: int) -> str:
    """Return a text of at most `most` bytes: its beginning and its end, with the number of characters between."""
    content = text.encode()
    if len(content) <= most:
        return text
    room = max(most - _GAP, 0)
    tail = int(room * _TAIL)
    head, end = content[: room - tail].decode(errors="ignore"), content[len(content) - tail :].decode(errors="ignore")
    return f"{head} … [{len(text) - len(head) - len(end):,} characters left out] … {end}"


def size(node: Any) -> int:
    """Return the bytes of a value as JSON."""
    return len(json.dumps(node, ensure_ascii=False).encode(errors="replace"))


class _Cuts:
    """What was left out by its place, where the entries of a list are one place: how many of how many."""

    def __init__(self) -> None:
        self.entries: dict[str, list[int]] = {}
        self.characters: dict[str, int] = {}

    def entry(self, place: str, missing: int, count: int) -> None:
        if missing:
            counted = self.entries.setdefault(place, [0, 0])
            counted[0] += missing
            counted[1] += count

    def phrases(self) -> list[str]:
        """Return a phrase for each place, the outermost first."""
        by_place = {place: f"{place}: {missing} of {count} entries" for place, (missing, count) in self.entries.items()}
        by_place |= {place: f"{place}: {count:,} characters" for place, count in self.characters.items()}
        places = sorted(by_place, key=lambda place: (place.count(".") + place.count("["), place))
        rest = len(places) - _MOST_PARTS
        return [shortened_text(by_place[place], 100) for place in places[:_MOST_PARTS]] + (
            [f"and {rest} more places"] if rest > 0 else []
        )


def _fitted(node: Any, room: int, place: str, cuts: _Cuts) -> Any:
    if size(node) <= room:
        return node
    match node:
        case str():
            cut = shortened_text(node, max(room - 8, 0))
            cuts.characters[place] = cuts.characters.get(place, 0) + max(0, len(node) - len(cut))
            return cut
        case Mapping():
            return _mapping(node, room, place, cuts)
        case list() | tuple():
            return _entries(node, room, place, cuts)
        case _:
            return node


def _mapping(node: Mapping[str, Any], room: int, place: str, cuts: _Cuts) -> dict[str, Any]:
    """Return a mapping: its facts whole, and details as the rest of the room allows, smallest first.

    Every key of the document itself stays; of a mapping in it, as many from the first on as there is room for.
    """
    if place:
        node = _first_keys(node, room, place, cuts)
    details = sorted((key for key, value in node.items() if not _is_fact(value)), key=lambda key: size(node[key]))
    room -= sum(size(key) + size(value) + 4 for key, value in node.items() if _is_fact(value))
    fitted = dict(node)
    for number, key in enumerate(details):
        share = max(0, room // (len(details) - number) - size(key) - 4)
        fitted[key] = _fitted(node[key], share, f"{place}.{key}" if place else key, cuts)
        room -= size(key) + size(fitted[key]) + 4
    return fitted


def _first_keys(node: Mapping[str, Any], room: int, place: str, cuts: _Cuts) -> Mapping[str, Any]:
    first, used = dict[str, Any](), 2
    for key, value in node.items():
        used += size(key) + 4 + (size(value) if _is_fact(value) else _EMPTY)
        if used > room:
            break
        first[key] = value
    cuts.entry(place, len(node) - len(first), len(node))
    return first


def _entries(node: Sequence[Any], room: int, place: str, cuts: _Cuts) -> list[Any]:
    """Return the entries of a list from the first on: as many as the room has the facts of."""
    least = [_least(entry) + 2 for entry in node]
    count, used = 0, 2
    while count < len(node) and used + least[count] <= room:
        used += least[count]
        count += 1
    cuts.entry(place, len(node) - count, len(node))
    chosen = sorted(range(count), key=lambda index: size(node[index]))
    fitted = dict[int, Any]()
    rest, needed = room - 2, sum(least[:count])
    for number, index in enumerate(chosen):
        # What is beyond the facts of all is shared evenly.
        needed -= least[index]
        share = least[index] + max(0, rest - needed - least[index]) // (count - number)
        fitted[index] = _fitted(node[index], share - 2, f"{place}[]", cuts)
        rest -= size(fitted[index]) + 2
    return [fitted[index] for index in range(count)]


def _least(entry: Any) -> int:
    """Return the bytes of an entry without its details."""
    match entry:
        case Mapping():
            return sum(size(key) + 4 + (size(value) if _is_fact(value) else _EMPTY) for key, value in entry.items()) + 2
        case list() | tuple():
            return 2
        case _:
            return min(size(entry), _SHORT)


def _is_fact(value: Any) -> bool:
    return not isinstance(value, Mapping | list | tuple) and size(value) <= _SHORT
