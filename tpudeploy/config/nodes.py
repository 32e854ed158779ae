"""Define the tree of a YAML document, in which every key and value has its place.

A profile has about a hundred nodes, and a fleet a thousand profiles, so they are named tuples, which take a third of
the time of a frozen dataclass. A place becomes a Location when a message or a plan asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location

if TYPE_CHECKING:
    from tpudeploy.config.source import Source

Path: TypeAlias = tuple[str | int, ...]


class SourcePlace(NamedTuple):
    """A part of one line of a source. Line and column count from 0, `width` is in characters."""

    source: Source
    line: int
    column: int
    width: int = 1

    @property
    def location(self) -> Location:
        return self.source.location(self.line, self.column, self.width)


class ScalarNode(NamedTuple):
    """A scalar. `text` is its content before it was read as a number; `plain` means that it has no quotes.

    `reference` is the source text, with its `${env:NAME}`, if a part of the value came from the environment. Messages
    show the reference and never the value.
    """

    place: SourcePlace
    value: bool | int | float | str | None
    text: str
    plain: bool
    reference: str | None = None

    @property
    def at(self) -> Location:
        return self.place.location


class ListNode(NamedTuple):
    place: SourcePlace
    items: tuple[Node, ...]

    @property
    def at(self) -> Location:
        return self.place.location


class Entry(NamedTuple):
    """One `key: value`. `deletes`: its null removed what a lower layer had set."""

    key_place: SourcePlace
    value: Node
    deletes: bool = False

    @property
    def key(self) -> Location:
        return self.key_place.location


class MapNode(NamedTuple):
    place: SourcePlace
    entries: Mapping[str, Entry]

    @property
    def at(self) -> Location:
        return self.place.location


Node: TypeAlias = ScalarNode | ListNode | MapNode


def is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value is None


def plain(node: Node) -> Json:
    """Return the value without locations, as JSON."""
    match node:
        case ScalarNode():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
        case MapNode():
            return plain_map(node)


def plain_map(node: MapNode) -> dict[str, Json]:
    return {key: plain(entry.value) for key, entry in node.entries.items()}


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Yield the node and all nodes below it, each before its children."""
    yield path, node
    match node:
        case MapNode():
            for key, entry in node.entries.items():
                yield from walk(entry.value, (*path, key))
        case ListNode():
            for index, item in enumerate(node.items):
                yield from walk(item, (*path, index))
        case ScalarNode():
            return


def with_entries(node: MapNode, entries: Mapping[str, Entry]) -> MapNode:
    """Return the mapping with these entries; the same object if nothing changed, as in most of a tree."""
    own = node.entries
    is_same = len(entries) == len(own) and all(own.get(key) is entry for key, entry in entries.items())
    return node if is_same else MapNode(node.place, entries)


def with_items(node: ListNode, items: tuple[Node, ...]) -> ListNode:
    is_same = all(new is old for new, old in zip(items, node.items, strict=True))
    return node if is_same else ListNode(node.place, items)


def find(node: Node, path: Path) -> Node | None:
    """Return the node at `path`, or None."""
    for part in path:
        if type(node) is MapNode:
            entry = node.entries.get(part)  # type: ignore[arg-type]  # an index is absent
            if entry is None:
                return None
            node = entry.value
        # A dotted path has the index of an item as a word.
        elif isinstance(node, ListNode) and str(part).isdecimal() and int(part) < len(node.items):
            node = node.items[int(part)]
        else:
            return None
    return node


def key_location(root: Node, path: Path) -> Location | None:
    """Return the location of the last key of `path`."""
    parent = find(root, path[:-1]) if path else None
    if isinstance(parent, MapNode) and path[-1] in parent.entries:
        return parent.entries[str(path[-1])].key
    return None


def dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)
