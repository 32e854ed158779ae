"""Compose a file section by section, so that a section that many files of a fleet have in common is parsed once.

A section is a line that begins with a letter, and all lines up to the next such line. Where each section is a block
mapping by itself, the file is the mapping of all their entries: a scalar without quotes and a block end at such a line,
and quotes or brackets that are still open there leave a section that is not valid by itself. Every other file is
composed as a whole, and so is one with a problem, for its message.

Measured in instructions (valgrind): of a fleet, a profile more costs `validate` 1.4 million instead of 2.1, and
`plan` 3.4 instead of 4.2.

Why: decision 78 in docs/decisions.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final

from tpudeploy.config.compose import MAX_NODES, Composed, compose
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Place, ScalarNode, Shared, plain, walk
from tpudeploy.config.source import Source
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.pattern import pattern

_BEGINS = pattern(r"^(?=[a-z_])", re.MULTILINE)
# What is anchored may be repeated, up to a number of values in the whole file; the others begin or end a document.
_REACHES_FURTHER = pattern(r"&|^(?:---|\.\.\.|%)", re.MULTILINE)
_MOST_SECTIONS: Final = 4096


def compose_file(source: Source) -> Composed:
    """Return what `compose` does."""
    return _compose_sections(source) or compose(source)


class _Section:
    """A text that begins with a letter, composed as if it were a file. The next section is `lines` below it."""

    def __init__(self, text: str, root: MapNode, *, has_null: bool) -> None:
        self.entries = root.entries
        self.has_null = has_null
        self.lines = text.count("\n")
        self._root = root

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """For each dotted path that `find` knows, where its value is, or the first entry of a mapping."""
        places: dict[str, Place] = {}
        for path, node in walk(self._root):
            if isinstance(node, MapNode) and node.entries:
                continue
            parts = list(takewhile(lambda part: "." not in part, map(str, path)))
            for end in range(1, len(parts) + 1):
                places.setdefault(".".join(parts[:end]), node.place)
        return places


def _compose_sections(source: Source) -> Composed | None:
    """Return the mapping of all sections, or None if the file is not made of sections alone."""
    text = source.text
    # A value has a character at least, so that a shorter text has no more values than are allowed.
    if not text.isascii() or "\r" in text or len(text) > MAX_NODES:
        return None
    head, *texts = _BEGINS.split(text)
    if not texts or not _is_comment(head):
        return None
    sections: dict[str, tuple[_Section, int]] = {}
    has_null = False
    count = 0
    line = first_line = head.count("\n")
    for part in texts:
        section = _section(part)
        if section is None:
            return None
        sections |= dict.fromkeys(section.entries, (section, line))
        count += len(section.entries)
        has_null = has_null or section.has_null
        line += section.lines
    if len(sections) < count:  # a duplicate key
        return None
    root = MapNode(Place(source, first_line, 0, 0), _Entries(source, sections))
    return Composed(node=root, broken=False, problems=(), has_null=has_null)


def _is_comment(text: str) -> bool:
    return all(line.startswith("#") or not line for line in text.split("\n"))


@lru_cache(maxsize=_MOST_SECTIONS)
def _section(text: str) -> _Section | None:
    if _REACHES_FURTHER.search(text):
        return None
    composed = compose(Source("", text))
    root = composed.node
    if not isinstance(root, MapNode) or composed.problems:
        return None
    return _Section(text, root, has_null=composed.has_null)


class _Entries(Shared):
    """The entries of a file, each moved from its section to its source and line when it is first looked at.

    `_sections` has, for each key, its section and the line where that begins.
    """

    def __init__(self, source: Source, sections: dict[str, tuple[_Section, int]]) -> None:
        self._source = source
        self._sections = sections
        self._moved: dict[str, Entry] = {}

    def __getitem__(self, key: str) -> Entry:
        if key not in self._moved:
            section, lines = self._sections[key]
            self._moved[key] = _moved_entry(section.entries[key], self._source, lines)
        return self._moved[key]

    def __contains__(self, key: object) -> bool:
        return key in self._sections

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __len__(self) -> int:
        return len(self._sections)

    def values_as_json(self) -> dict[str, Json]:
        return {key: plain(section.entries[key].value) for key, (section, _) in self._sections.items()}

    def first(self, path: str) -> Location | None:
        section, lines = self._sections.get(path.partition(".")[0], (None, 0))
        place = None if section is None else section.places.get(path)
        return place and self._source.location(place.line + lines, place.column, place.width)


def _moved(node: Node, source: Source, lines: int) -> Node:
    """Return the node as one of this source, `lines` further down."""
    _, line, column, width = node.place
    place = Place(source, line + lines, column, width)
    if isinstance(node, ScalarNode):
        return ScalarNode(place, node.value, node.text, node.plain)
    if isinstance(node, ListNode):
        return ListNode(place, tuple([_moved(item, source, lines) for item in node.items]))
    return MapNode(place, {key: _moved_entry(entry, source, lines) for key, entry in node.entries.items()})


def _moved_entry(entry: Entry, source: Source, lines: int) -> Entry:
    (_, line, column, width), value, _ = entry
    return Entry(Place(source, line + lines, column, width), _moved(value, source, lines))
