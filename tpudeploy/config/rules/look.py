"""How a rule looks at a tree that may be wrong elsewhere: what is absent or of another type is just not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tpudeploy.catalog import flags
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Path, ScalarNode, find, plain
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location

T = TypeVar("T", bool, int, str)
_ARGS: Path = ("serving", "args")


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


def argument(root: MapNode, flag_name: str) -> tuple[Path, Entry] | None:
    """Return the path and entry of a flag under `serving.args`, by canonical name; None where it is not written."""
    for name, entry in entries(root, _ARGS).items():
        flag = flags.find(name)
        if flag is not None and flag.name == flag_name:
            return (*_ARGS, name), entry
    return None


def argument_value(root: MapNode, flag_name: str) -> Json:
    """Return what a flag under `serving.args` is set to, or None."""
    written = argument(root, flag_name)
    return None if written is None else plain(written[1].value)
