"""Define Profile: a valid profile, with the origin of each value that it sets. Its sections are imported from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Self

from pydantic import Field, PrivateAttr

from tpudeploy.config.check import check, invalid
from tpudeploy.config.credentials import credentials
from tpudeploy.config.diagnose import in_order
from tpudeploy.config.merge import without_nulls
from tpudeploy.config.nodes import MapNode, ScalarNode, dotted, find, walk
from tpudeploy.config.python_tree import tree_of
from tpudeploy.config.reader import Reader
from tpudeploy.config.schema import (
    BootSpec,
    BudgetSpec,
    HealthSpec,
    LifecycleSpec,
    ModelSpec,
    NetworkSpec,
    PlacementSpec,
    ProfileSpec,
    RouterSpec,
    ScaleSpec,
    ServingSpec,
    TpuSpec,
)
from tpudeploy.config.schema.base import FormatVersion
from tpudeploy.config.topology import with_type
from tpudeploy.domain.deployment import AttributeOrigins, first_place
from tpudeploy.domain.diagnostics import Diagnostic, Location, errors_in

# A program that makes a section gets our messages: they come with this module.
__all__ = [
    "BootSpec",
    "BudgetSpec",
    "HealthSpec",
    "LazyOrigins",
    "LifecycleSpec",
    "ModelSpec",
    "NetworkSpec",
    "PlacementSpec",
    "Profile",
    "RouterSpec",
    "ScaleSpec",
    "ServingSpec",
    "TpuSpec",
]


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


class Profile(ProfileSpec):
    """A valid profile: the keys of the format. `serving.model_fields_set` are those that the profile sets.

    Made in Python, it is checked by the rules of a file: `Profile(name=..., model=..., tpu=..., serving=...)` raises
    `errors.ProfileInvalid` with every problem, each with the path of its key.
    """

    version: FormatVersion = Field(default=1, description="Version of this format. Default: 1.", examples=[1])

    _origins: AttributeOrigins | None = PrivateAttr(default=None)
    _warnings: tuple[Diagnostic, ...] = PrivateAttr(default=())
    _reader: Reader | None = PrivateAttr(default=None)

    if not TYPE_CHECKING:  # for type checkers, the arguments are the keys

        def __init__(self, **values: object) -> None:
            tree = tree_of({"version": 1, **values})
            spec, problems = check(without_nulls(tree), {})
            diagnostics = in_order([*credentials((), tree), *problems])
            if spec is None or errors_in(diagnostics):
                raise invalid("The profile", diagnostics)
            super().__init__(**{name: getattr(spec, name) for name in spec.model_fields_set})
            self._origins, self._warnings = LazyOrigins(with_type(tree)), diagnostics

        __init__.__pydantic_base_init__ = True  # what was validated is not passed to it once more

    def __eq__(self, other: object) -> bool:
        """Return whether another profile says the same, wherever it was written."""
        return isinstance(other, Profile) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # mappings are among its values

    @classmethod
    def from_keys(
        cls, spec: ProfileSpec, *, origins: AttributeOrigins, warnings: tuple[Diagnostic, ...], reader: Reader | None
    ) -> Self:
        """Return the profile of keys that were checked."""
        profile = cls.model_construct(spec.model_fields_set, **spec.__dict__)
        profile._origins, profile._warnings, profile._reader = origins, warnings, reader  # noqa: SLF001 - its own
        return profile

    def read_by(self, reader: Reader) -> Self:
        """Return this profile, with other files that it names read by `reader`."""
        return self.from_keys(self, origins=self.origins, warnings=self.warnings, reader=reader)

    @property
    def origins(self) -> AttributeOrigins:
        """The location of the final value of every leaf that is set, in a file, an overlay, or `--set`, by its path.

        Lists are there by index and as a whole.
        """
        assert self._origins is not None
        return self._origins

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What to consider."""
        return self._warnings

    @property
    def reader(self) -> Reader | None:
        """What reads other files that the profile names, under the same restrictions as the profile itself."""
        return self._reader

    def reference(self, path: str) -> str | None:
        """Return the source text with its `${env:NAME}` if a part of the value at `path` came from the environment."""
        return self.origins.reference(path) if isinstance(self.origins, LazyOrigins) else None
