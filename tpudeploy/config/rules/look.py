"""How a rule looks at a tree that may be wrong elsewhere: what is absent or of another type is just not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Path, ScalarNode, find
from tpudeploy.domain.diagnostics import Location

T = TypeVar("T", bool, int, str)


def value(root: MapNode, path: Path, kind: type[T]) -> T | None:
    """The scalar at `path` if it is of exactly that type."""
    node = find(root, path)
    found = node.value if isinstance(node, ScalarNode) else None
    return found if type(found) is kind else None


def entries(root: MapNode, path: Path) -> Mapping[str, Entry]:
    node = find(root, path)
    return node.entries if isinstance(node, MapNode) else {}


def texts(root: MapNode, path: Path) -> Mapping[Path, str]:
    """The text items of the list at `path`."""
    node = find(root, path)
    items: tuple[Node, ...] = node.items if isinstance(node, ListNode) else ()
    return {
        (*path, i): item.value
        for i, item in enumerate(items)
        if isinstance(item, ScalarNode) and isinstance(item.value, str)
    }


def at(root: MapNode, path: Path) -> Location:
    """Where the value at `path`, which is there, is written."""
    node = find(root, path)
    assert node is not None
    return node.at
