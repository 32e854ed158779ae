"""How a rule looks at a tree that may be wrong elsewhere: what is absent or of another type is just not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from tpudeploy.catalog import flags
from tpudeploy.catalog._spelling import count_of
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Path, ScalarNode, find, is_null, key_location, plain
from tpudeploy.config.owned import FLAG_OF_KEY
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.frozen import frozen

T = TypeVar("T", bool, int, str)
_KEY_OF_FLAG = {flag: key for key, flag in FLAG_OF_KEY.items()}
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


def setting(root: MapNode, flag_name: str) -> Setting | None:
    """Return what a flag is set to, under its key or under `serving.args`; None where it is not written or null."""
    key = _KEY_OF_FLAG.get(flag_name)
    if key is None:
        written = argument(root, flag_name)
        path, node = (written[0], written[1].value) if written is not None else ((), None)
    else:
        path, node = key, find(root, key)
    if node is None or is_null(node):
        return None
    return Setting(path=path, at=key_location(root, path) or node.at, value=plain(node))


@frozen
class Setting:
    """A flag's value, and where its key is written."""

    path: Path
    at: Location
    value: Json

    @property
    def number(self) -> float | None:
        """The value as a number, where vLLM reads one: `7`, "7", 16k."""
        return _number(self.value)


def _number(value: Json) -> float | None:
    number = count_of(value) if isinstance(value, str) else value
    try:
        return None if isinstance(number, bool | list | dict) or number is None else float(number)
    except ValueError:
        return None
