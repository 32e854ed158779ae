"""Define Profile: a valid profile, with the origin of each value that it sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tpudeploy.config.nodes import MapNode, ScalarNode, dotted, find, walk
from tpudeploy.domain.deployment import AttributeOrigins, first_place
from tpudeploy.domain.diagnostics import Diagnostic, Location

if TYPE_CHECKING:
    from tpudeploy.config.reader import Reader
    from tpudeploy.config.schema import ProfileSpec  # importing it imports pydantic


class LazyOrigins(AttributeOrigins):
    """Maps the dotted path of every leaf of a tree to its location. It is built on first use: most are never used."""

    def __init__(self, tree: MapNode) -> None:
        self._tree = tree

    def reference(self, path: str) -> str | None:
        """Return the source text at `path` if a part of its value came from the environment."""
        node = find(self._tree, tuple(path.split(".")))
        return node.reference if isinstance(node, ScalarNode) else None

    def first(self, path: str) -> Location | None:
        node = find(self._tree, tuple(path.split(".")))
        if isinstance(node, MapNode) and node.entries:
            return first_place(self, path)
        return None if node is None else node.at

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


class Joined(AttributeOrigins):
    """Looks up `upper`, then `lower`, which is not built for paths that are in `upper`."""

    def __init__(self, upper: Mapping[str, Location], lower: Mapping[str, Location]) -> None:
        self._upper = upper
        self._lower = lower

    def first(self, path: str) -> Location | None:
        if path in self._upper:
            return self._upper[path]
        return self._lower.first(path) if isinstance(self._lower, AttributeOrigins) else first_place(self._lower, path)

    def __getitem__(self, path: str) -> Location:
        return self._upper[path] if path in self._upper else self._lower[path]

    def __iter__(self) -> Iterator[str]:
        yield from self._lower
        yield from (path for path in self._upper if path not in self._lower)

    def __len__(self) -> int:
        return len({*self._lower, *self._upper})


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile. `spec` has the keys of the format; `spec.serving.model_fields_set` are those that the profile sets.

    `origins` maps the dotted path of every leaf that is set, lists by index and as a whole, to the location of its
    final value: in a file, an overlay, or `--set`. Other files that the profile names are read by its `reader`, under
    the same restrictions as the profile itself.
    """

    spec: ProfileSpec
    origins: Mapping[str, Location]
    warnings: tuple[Diagnostic, ...]
    reader: Reader | None = field(default=None, compare=False, repr=False)

    def reference(self, path: str) -> str | None:
        """Return the source text with its `${env:NAME}` if a part of the value at `path` came from the environment."""
        return self.origins.reference(path) if isinstance(self.origins, LazyOrigins) else None
