"""Where every written value came from, gathered when somebody first asks: most profiles of a fleet are never asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from tpudeploy.config.nodes import MapNode, ScalarNode, dotted, find, walk
from tpudeploy.domain.diagnostics import Location


class Origins(Mapping[str, Location]):
    """The dotted path of every leaf of a tree, lists by index and as a whole, to its place."""

    def __init__(self, tree: MapNode) -> None:
        self._tree = tree

    def reference(self, path: str) -> str | None:
        """Return what a person wrote at `path`, where a part of its value came from the environment."""
        node = find(self._tree, tuple(path.split(".")))
        return node.reference if isinstance(node, ScalarNode) else None

    @cached_property
    def _places(self) -> dict[str, Location]:
        leaves = (p for p in walk(self._tree) if p[0] and not (isinstance(p[1], MapNode) and p[1].entries))
        return {dotted(path): node.at for path, node in leaves}

    def __getitem__(self, path: str) -> Location:
        return self._places[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Joined(Mapping[str, Location]):
    """Two as one, what is in the `upper` first; the lower one is not gathered for that."""

    def __init__(self, upper: Mapping[str, Location], lower: Mapping[str, Location]) -> None:
        self._upper = upper
        self._lower = lower

    def __getitem__(self, path: str) -> Location:
        return self._upper[path] if path in self._upper else self._lower[path]

    def __iter__(self) -> Iterator[str]:
        yield from self._lower
        yield from (path for path in self._upper if path not in self._lower)

    def __len__(self) -> int:
        return len({*self._lower, *self._upper})
