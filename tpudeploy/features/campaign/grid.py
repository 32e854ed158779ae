"""A grid: grid.yaml with the place of each value, and the combinations of its lists.

A combination is a mapping of paths of the profile to values, which `Profile.with_settings` takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from pydantic import ValidationError

from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.document import read_mapping, unusable
from tpudeploy.config.interpolate import Interpolation
from tpudeploy.config.merge import without_nulls
from tpudeploy.config.nodes import MapNode, Path, find, is_null, key_location, plain_map
from tpudeploy.config.translate import findings_of, translate
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.plan import Effect
from tpudeploy.features.benchmark.cells import grid as cells_of
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.report.labels import text_of
from tpudeploy.features.campaign.grid_schema import GridSpec
from tpudeploy.node.fingerprint import effect

# The lists that have a name of their own, by the paths that they vary.
SHORT: Mapping[str, str] = {"model.id": "models", "tpu.type": "slices", "placement.backend": "backends"}
_SETTINGS = "settings"
_MOST_SERVERS = 1_000
_MOST_PRODUCTS = 100_000  # combinations before exclusions
_FORM = "version: 1, name: gemma, base: base.yaml, slices: [v6e-1, v6e-4]"
# The campaign decides these for each of its deployments.
_OWN = ("name", "version", "extends", "replicas", "router", "scale", "lifecycle", "budget", "notify")


@dataclass(frozen=True, slots=True, kw_only=True)
class GridAxis:
    """One list: the path of the profile that it varies, its values, where they stand, and where the list does."""

    path: str
    values: tuple[Json, ...]
    places: tuple[Location | None, ...]
    at: Location | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One value of each axis, by its path, and where each stands."""

    values: Mapping[str, Json]
    places: Mapping[str, Location | None]

    @property
    def id(self) -> str:
        """The values as one text, by which combinations of one grid are known."""
        return " ".join(self.settings)

    @property
    def slice_values(self) -> tuple[tuple[str, str], ...]:
        """The values that another slice is needed for: what agrees in them is changed in place."""
        return tuple((path, text_of(value)) for path, value in self.values.items() if _needs_slice(path))

    @property
    def settings(self) -> tuple[str, ...]:
        """The values as `--set` takes them."""
        return tuple(f"{path}={json.dumps(value)}" for path, value in self.values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignGrid:
    """A grid that was read. `file` is its name, `text` its content."""

    file: str
    text: str
    spec: GridSpec
    axes: tuple[GridAxis, ...]
    combinations: tuple[Combination, ...]
    points: tuple[Point, ...]
    tree: MapNode

    def at(self, *path: str | int) -> Location | None:
        """Return where a key stands, or the place of the whole file without it."""
        return key_location(self.tree, path) or self.tree.at

    def value_at(self, *path: str | int) -> Location | None:
        node = find(self.tree, path)
        return self.tree.at if node is None else node.at


def parse_grid(name: str, content: bytes, environment: Mapping[str, str], trust: Trust = TRUSTED) -> CampaignGrid:
    """Return the grid in a file. Raise ConfigError with every problem in it, each with its place."""
    source, root = read_mapping(name, content, noun="a grid", example=_FORM)
    problems: list[Diagnostic] = []
    nulls: dict[Path, Location] = {(key,): entry.key for key, entry in root.entries.items() if is_null(entry.value)}
    tree = Interpolation(environment, problems, trust).tree(without_nulls(root))
    try:
        spec = GridSpec.model_validate(plain_map(tree))
    except ValidationError as invalid:
        findings = tuple(findings_of(invalid))
        raise unusable(name, [*problems, *translate(findings, tree, nulls, GridSpec)]) from invalid
    axes = tuple(_axes(spec, tree))
    problems += [*_axis_problems(spec, axes, tree), *_exclusion_problems(spec, axes, tree)]
    if problems:
        raise unusable(name, problems)
    combinations = _combinations_of(name, spec, axes, tree)
    if not combinations:
        at = key_location(tree, ("exclude",))
        message = "The grid is empty: `exclude` leaves no combination out of them all"
        raise unusable(name, [problem(codes.OUT_OF_RANGE, message, at, hint="remove an exclusion")])
    cells = spec.cells
    points = cells_of(*(sorted(set(sizes)) for sizes in (cells.concurrency, cells.context, cells.output)))
    return CampaignGrid(
        file=name,
        text=source.text,
        spec=spec,
        axes=axes,
        combinations=combinations,
        points=points,
        tree=tree,
    )


def _combinations_of(name: str, spec: GridSpec, axes: Sequence[GridAxis], tree: MapNode) -> tuple[Combination, ...]:
    """Return the combinations. Raise ConfigError for more than can be sized in a minute, before they are made."""
    count = prod(len(axis.values) for axis in axes)
    combinations = tuple(_combinations(spec, axes)) if count <= _MOST_PRODUCTS else ()
    if count > _MOST_PRODUCTS or len(combinations) > _MOST_SERVERS:
        largest = max(axes, key=lambda axis: len(axis.values))
        message = f"The grid has {len(combinations) or count:,} servers, and a campaign has at most {_MOST_SERVERS:,}"
        at = largest.at or key_location(tree, ("name",))
        hint = f"write fewer values: {largest.path} has {len(largest.values):,}"
        raise unusable(name, [problem(codes.OUT_OF_RANGE, message, at, hint=hint)])
    return combinations


def _axes(spec: GridSpec, tree: MapNode) -> Iterator[GridAxis]:
    for path, name in SHORT.items():
        if values := getattr(spec, name):
            yield _axis(path, values, (name,), tree)
    for path, values in spec.settings.items():
        yield _axis(path.replace("-", "_") if "." in path else path, values, (_SETTINGS, path), tree)


def _axis(path: str, values: Sequence[Json], where: Path, tree: MapNode) -> GridAxis:
    nodes = [find(tree, (*where, index)) for index in range(len(values))]
    return GridAxis(
        path=path,
        values=tuple(values),
        places=tuple(None if node is None else node.at for node in nodes),
        at=key_location(tree, where),
    )


def _axis_problems(spec: GridSpec, axes: Sequence[GridAxis], tree: MapNode) -> Iterator[Diagnostic]:
    """Yield the problems of the lists: none at all, an empty one, a value twice, a path that is not theirs to vary."""
    if not axes:
        hint = "e.g. slices: [v6e-1, v6e-4], or settings: {serving.padding_gap: [0, 512]}"
        message = "The grid is empty: nothing is varied"
        yield problem(codes.OUT_OF_RANGE, message, key_location(tree, ("name",)), hint=hint)
    for path, name in SHORT.items():
        if name in spec.model_fields_set and not getattr(spec, name):
            message = f"The grid is empty: `{name}` has no value"
            yield problem(codes.OUT_OF_RANGE, message, key_location(tree, (name,)), hint=f"leave out {name}")
        if path in spec.settings and getattr(spec, name):
            at = key_location(tree, (_SETTINGS, path))
            yield problem(codes.OUT_OF_RANGE, f"{path} is also varied by `{name}`", at, hint="write one list")
    for axis in axes:
        if axis.path.partition(".")[0] in _OWN:
            message = f"The campaign decides {axis.path} itself"
            yield problem(codes.OUT_OF_RANGE, message, axis.at, hint="leave it out; `base` may set it")
        texts = [text_of(value) for value in axis.values]
        for index, text in enumerate(texts):
            if text in texts[:index]:
                yield problem(codes.OUT_OF_RANGE, f"{quoted(text)} is twice in the list", axis.places[index])


def _exclusion_problems(spec: GridSpec, axes: Sequence[GridAxis], tree: MapNode) -> Iterator[Diagnostic]:
    """Yield a problem for each exclusion that excludes nothing, because of a misspelt path or value."""
    values = {axis.path: [text_of(value) for value in axis.values] for axis in axes}
    for index, exclusion in enumerate(spec.exclude):
        for path, value in exclusion.items():
            where = ("exclude", index, path)
            if path not in values:
                hint = did_you_mean(path, values) or f"varied are {', '.join(values)}"
                yield problem(codes.UNKNOWN_KEY, f"The grid does not vary {path}", key_location(tree, where), hint=hint)
            elif text_of(value) not in values[path]:
                node = find(tree, where)
                at = None if node is None else node.at
                hint = did_you_mean(text_of(value), values[path])
                yield problem(codes.NOT_A_CHOICE, f"{path} is never {quoted(text_of(value))} here", at, hint=hint)


def _combinations(spec: GridSpec, axes: Sequence[GridAxis]) -> Iterator[Combination]:
    paths = [axis.path for axis in axes]
    excluded = [{path: text_of(value) for path, value in each.items()} for each in spec.exclude]
    for pairs in product(*(tuple(zip(axis.values, axis.places, strict=True)) for axis in axes)):
        values = dict(zip(paths, (value for value, _ in pairs), strict=True))
        texts = {path: text_of(value) for path, value in values.items()}
        if not any(each.items() <= texts.items() for each in excluded):
            yield Combination(values=values, places=dict(zip(paths, (place for _, place in pairs), strict=True)))


def _needs_slice(path: str) -> bool:
    try:
        return effect(path) is Effect.REPLACE
    except KeyError:  # the profile refuses the path later, with its place here
        return False
