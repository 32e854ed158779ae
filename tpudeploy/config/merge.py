"""Merge one layer over another, node by node: mappings merge, lists and scalars replace, null deletes."""

from __future__ import annotations

from tpudeploy.config.nodes import (
    Entry,
    ListNode,
    MapNode,
    Node,
    Path,
    ScalarNode,
    is_null,
    with_entries,
    with_items,
)

# Inside a flag's value, a null that deletes nothing is JSON's null, as in `hf_overrides: {rope_scaling: null}`.
_FLAG_VALUES: Path = ("serving", "args")


def merge(lower: MapNode, upper: MapNode) -> MapNode:
    entries = dict(lower.entries)
    for key, entry in upper.entries.items():
        entries[key] = _merge_entry(entries[key], entry) if key in entries else entry
    return lower._replace(entries=entries)


def _merge_entry(lower: Entry, upper: Entry) -> Entry:
    if isinstance(lower.value, MapNode) and isinstance(upper.value, MapNode):
        return upper._replace(value=merge(lower.value, upper.value))
    return upper._replace(deletes=is_null(upper.value) and (lower.deletes or not is_null(lower.value)))


def without_nulls(root: MapNode) -> MapNode:
    """Return the tree without nulls, which delete a lower layer's value or select the default."""
    return _mapping_without_nulls(root, ())


def _mapping_without_nulls(root: MapNode, path: Path) -> MapNode:
    entries = {
        key: _entry_without_nulls(entry, (*path, key))
        for key, entry in root.entries.items()
        if not (is_null(entry.value) and (entry.deletes or not _is_json(path)))
    }
    return with_entries(root, entries)


def _entry_without_nulls(entry: Entry, path: Path) -> Entry:
    """Return the entry itself if nothing below it was removed."""
    value = _node_without_nulls(entry.value, path)
    return entry if value is entry.value else entry._replace(value=value)


def _node_without_nulls(node: Node, path: Path) -> Node:
    match node:
        case MapNode():
            return _mapping_without_nulls(node, path)
        case ListNode():
            return with_items(node, tuple(_node_without_nulls(item, (*path, i)) for i, item in enumerate(node.items)))
        case ScalarNode():
            return node


def _is_json(path: Path) -> bool:
    return len(path) > len(_FLAG_VALUES) and path[: len(_FLAG_VALUES)] == _FLAG_VALUES
