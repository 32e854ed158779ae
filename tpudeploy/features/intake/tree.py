"""Values of a YAML document of another tool, with their places. A value of another kind counts as absent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tpudeploy.config import codes
from tpudeploy.config.compose import compose
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import ListNode, MapNode, Node, ScalarNode, find
from tpudeploy.config.source import Source
from tpudeploy.domain.diagnostics import Diagnostic, errors_in
from tpudeploy.features.intake.source import Stop, error_of

_SEPARATOR = re.compile(r"(?m)^---(?=\s|$)")
_MOST_DOCUMENTS = 200
_MERGE, _MERGE_KEY = re.compile(r"(?m)^(\s*(?:-\s+)?)<<(?=\s*:)"), "__"
_DEEPEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """One document of a file, whose places are those of the file."""

    root: MapNode


def documents(name: str, text: str) -> tuple[YamlDocument, ...]:
    """Return the documents of a file that are mappings. Raise ConfigError for a text that is not YAML."""
    node_at, begin = [], 0
    ends = [match.start() for match in _SEPARATOR.finditer(text)]
    if len(ends) > _MOST_DOCUMENTS:
        source = Source(name, text)
        message = f"The file has more than {_MOST_DOCUMENTS} documents"
        raise error_of(
            [problem(codes.FOREIGN, message, source.location_of(ends[_MOST_DOCUMENTS], ends[_MOST_DOCUMENTS] + 3))]
        )
    for end in [*ends, len(text)]:
        part = text[begin:end]
        first_line = 1 + text.count("\n", 0, begin)
        begin = end + 3 if end < len(text) else end
        source = Source(name, part, first_line)
        # A merge key, which compose files have and YAML 1.2 doesn't, is read as a key of the same width.
        composed = compose(source, _MERGE.sub(r"\1__", part))
        problems: list[Diagnostic] = [*errors_in(composed.problems)]
        if problems and not _is_empty(part):
            raise error_of(problems)
        if isinstance(composed.node, MapNode):
            node_at.append(YamlDocument(root=_merged(composed.node)))
        elif composed.node is not None and not _is_empty(part):
            raise error_of([problem(codes.FOREIGN, "Expected a mapping", composed.node.at)])
    return tuple(node_at)


def _merged(node: Node, depth: int = 0) -> Any:
    """Return a node with what its mappings merge: their own keys stay."""
    if depth > _DEEPEST:
        return node
    if isinstance(node, ListNode):
        return ListNode(node.place, tuple(_merged(item, depth + 1) for item in node.items))
    if not isinstance(node, MapNode):
        return node
    entries = {key: entry._replace(value=_merged(entry.value, depth + 1)) for key, entry in node.entries.items()}
    merge = entries.pop(_MERGE_KEY, None)
    if merge is None:
        return MapNode(node.place, entries)
    others = merge.value.items if isinstance(merge.value, ListNode) else (merge.value,)
    for other in others:
        if isinstance(other, MapNode):
            entries = {**other.entries, **entries}
    return MapNode(node.place, entries)


def _is_empty(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


def at(node: Node | None, *path: str | int) -> Node | None:
    return None if node is None else find(node, path)


def mapping(node: Node | None, *path: str | int) -> dict[str, Node]:
    """Return the values of a mapping by key, {} for anything else."""
    node_at = at(node, *path)
    return {key: entry.value for key, entry in node_at.entries.items()} if isinstance(node_at, MapNode) else {}


def items(node: Node | None, *path: str | int) -> tuple[Node, ...]:
    node_at = at(node, *path)
    return node_at.items if isinstance(node_at, ListNode) else ()


def text(node: Node | None, *path: str | int) -> str:
    """Return a scalar as it is written, "" for anything else."""
    node_at = at(node, *path)
    return node_at.text if isinstance(node_at, ScalarNode) and node_at.value is not None else ""


def number(node: Node | None, *path: str | int) -> int | None:
    value = text(node, *path)
    return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else None


def texts(node: Node | None, *path: str | int) -> tuple[str, ...]:
    """Return the scalars of a list, or the one scalar that stands in its place."""
    node_at = at(node, *path)
    if isinstance(node_at, ScalarNode) and node_at.value is not None:
        return (node_at.text,)
    return tuple(text(item) for item in items(node, *path))


def mappings_with(node: Node, key: str) -> Iterator[MapNode]:
    """Yield every mapping in a tree that has a key, outer ones first."""
    if isinstance(node, MapNode):
        if key in node.entries:
            yield node
        for entry in node.entries.values():
            yield from mappings_with(entry.value, key)
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from mappings_with(item, key)


def walk_keys(node: Node) -> Iterator[str]:
    match node:
        case MapNode():
            yield from node.entries
            for entry in node.entries.values():
                yield from walk_keys(entry.value)
        case ListNode():
            for item in node.items:
                yield from walk_keys(item)


def stop_at(node: Node | None, message: str, hint: str = "") -> Stop:
    return Stop(message, hint=hint, at=None if node is None else node.at)
