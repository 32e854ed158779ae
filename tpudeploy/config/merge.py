"""One layer over another, node by node: mappings merge, lists and scalars replace, null deletes."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.config.nodes import (
    Entry,
    ListNode,
    MapNode,
    Node,
    Path,
    ScalarNode,
    has_null,
    is_null,
    with_entries,
    with_items,
)

# Below a flag's value a null that deletes nothing is JSON's null, as in `hf_overrides: {rope_scaling: null}`.
_FLAG_VALUES: Path = ("serving", "args")


def merged(lower: MapNode, upper: MapNode) -> MapNode:
    entries = dict(lower.entries)
    for key, entry in upper.entries.items():
        entries[key] = _over(entries[key], entry) if key in entries else entry
    return replace(lower, entries=entries)


def _over(lower: Entry, upper: Entry) -> Entry:
    if isinstance(lower.value, MapNode) and isinstance(upper.value, MapNode):
        return replace(upper, value=merged(lower.value, upper.value))
    return replace(upper, deletes=is_null(upper.value) and (lower.deletes or not is_null(lower.value)))


def written(root: MapNode) -> MapNode:
    """The tree without its nulls: what they deleted, and what they leave to its default. Most trees have none."""
    return _kept(root, ()) if has_null(root) else root


def _kept(root: MapNode, path: Path) -> MapNode:
    entries = {
        key: _entry(entry, (*path, key))
        for key, entry in root.entries.items()
        if not (is_null(entry.value) and (entry.deletes or not _is_json(path)))
    }
    return with_entries(root, entries)


def _entry(entry: Entry, path: Path) -> Entry:
    """Itself where nothing below it is left out: most are scalars."""
    value = _written(entry.value, path)
    return entry if value is entry.value else replace(entry, value=value)


def _written(node: Node, path: Path) -> Node:
    match node:
        case MapNode():
            return _kept(node, path)
        case ListNode():
            return with_items(node, tuple(_written(item, (*path, i)) for i, item in enumerate(node.items)))
        case ScalarNode():
            return node


def _is_json(path: Path) -> bool:
    return len(path) > len(_FLAG_VALUES) and path[: len(_FLAG_VALUES)] == _FLAG_VALUES
