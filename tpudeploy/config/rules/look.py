"""Look up values in a tree that may have other errors: a value of another type counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from tpudeploy.catalog import flags, releases
from tpudeploy.catalog._spelling import count_of
from tpudeploy.catalog.engines import identify
from tpudeploy.config.keys import FLAG_OF_KEY
from tpudeploy.config.nodes import Entry, ListNode, MapNode, Node, Path, ScalarNode, find, is_null, plain
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.engine import Engine, EngineKind

T = TypeVar("T", bool, int, str)
_KEY_OF_FLAG = {flag: key for key, flag in FLAG_OF_KEY.items()}
_SECTIONS = tuple(dict.fromkeys(str(section) for section, _ in FLAG_OF_KEY))
_ARGS: Path = ("serving", "args")
_IMAGE: Path = ("serving", "image")


def value(root: MapNode, path: Path, kind: type[T]) -> T | None:
    """Return the scalar at `path` if it is of exactly that type."""
    node = find(root, path)
    scalar = node.value if isinstance(node, ScalarNode) else None
    return scalar if type(scalar) is kind else None


def entries(root: MapNode, path: Path) -> Mapping[str, Entry]:
    node = find(root, path)
    return node.entries if isinstance(node, MapNode) else {}


def texts(root: MapNode, path: Path) -> Mapping[Path, str]:
    """Return the text items of the list at `path`."""
    node = find(root, path)
    items: tuple[Node, ...] = node.items if isinstance(node, ListNode) else ()
    return {
        (*path, i): item.value
        for i, item in enumerate(items)
        if isinstance(item, ScalarNode) and isinstance(item.value, str)
    }


def at(root: MapNode, path: Path) -> Location:
    """Return the location of the value at `path`, which must exist."""
    node = find(root, path)
    assert node is not None
    return node.at


def image(root: MapNode) -> str:
    """Return the image that the profile names, or ""."""
    return value(root, _IMAGE, str) or ""


def engine_of(root: MapNode) -> Engine:
    """Return the engine of the image, by more than its name and tag if more is known of it."""
    return root.engine or identify(image(root))


def release(root: MapNode) -> str:
    """Return the release whose flags, values and variables are looked up: the image's, or else the newest."""
    engine = engine_of(root)
    is_one_of_ours = engine.kind is EngineKind.TPU_INFERENCE and engine.release is not None
    version = engine.release if is_one_of_ours else None
    return version if version is not None and releases.find(version) is not None else releases.NEWEST


def arguments(root: MapNode) -> Mapping[str, tuple[Path, Entry]]:
    """Return the path and entry of each flag under `serving.args` by canonical name; of one set twice, the first."""
    of_flags: dict[str, tuple[Path, Entry]] = {}
    version = release(root)
    for name, entry in entries(root, _ARGS).items():
        flag = flags.find(name, version)
        if flag is not None:
            of_flags.setdefault(flag.name, ((*_ARGS, name), entry))
    return of_flags


def argument_value(root: MapNode, flag_name: str) -> Json:
    """Return the value of a flag under `serving.args`, or None."""
    flag = arguments(root).get(flag_name)
    return None if flag is None else plain(flag[1].value)


def setting(root: MapNode, flag_name: str) -> Setting | None:
    """Return the value of a flag, under its key or under `serving.args`; None if it is not set or null."""
    key = _KEY_OF_FLAG.get(flag_name)
    if key is None:
        of_flag = arguments(root).get(flag_name)
    else:
        entry = entries(root, key[:-1]).get(str(key[-1]))
        of_flag = None if entry is None else (key, entry)
    return None if of_flag is None else _setting_of(*of_flag)


def settings(root: MapNode) -> Mapping[str, Setting]:
    """Return the values of all flags that `setting` would find, by their canonical names."""
    of_flags: dict[str, tuple[Path, Entry]] = {}
    for section in _SECTIONS:
        for name, entry in entries(root, (section,)).items():
            key: Path = (section, name)
            if key in FLAG_OF_KEY:
                of_flags[FLAG_OF_KEY[key]] = key, entry
    # A flag that has a key of its own counts only there.
    of_flags |= {name: of_flag for name, of_flag in arguments(root).items() if name not in _KEY_OF_FLAG}
    values = {name: _setting_of(*of_flag) for name, of_flag in of_flags.items()}
    return {name: value for name, value in values.items() if value is not None}


def _setting_of(path: Path, entry: Entry) -> Setting | None:
    return None if is_null(entry.value) else Setting(path=path, at=entry.key, value=plain(entry.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A flag's value, and the location of its key."""

    path: Path
    at: Location
    value: Json

    @property
    def number(self) -> float | None:
        """The value as a number, if vLLM reads it as one: `7`, "7", 16k."""
        number = count_of(self.value) if isinstance(self.value, str) else self.value
        if isinstance(number, bool | list | dict) or number is None:
            return None
        try:
            return float(number)
        except ValueError:
            return None
