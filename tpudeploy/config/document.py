"""Read a YAML file that is no profile, such as budgets or a grid: one mapping, or an error with every problem."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.config import codes
from tpudeploy.config.compose import compose
from tpudeploy.config.diagnose import in_order, problem
from tpudeploy.config.nodes import MapNode
from tpudeploy.config.source import Source, decode
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError


def read_mapping(name: str, content: bytes, *, noun: str, example: str) -> tuple[Source, MapNode]:
    """Return a file and the mapping in it. Raise ConfigError with every problem in it, each with its place.

    `noun` is what was expected, and `example` how it looks.
    """
    source = decode(name, content)
    if isinstance(source, Diagnostic):
        raise unusable(name, [source])
    composed = compose(source)
    if composed.problems:
        raise unusable(name, composed.problems)
    if not isinstance(composed.node, MapNode):
        at = source.location(0, 0)
        hint = f"e.g. {example}"
        raise unusable(name, [problem(codes.NOT_A_MAPPING, f"Expected {noun}", at, hint=hint)])
    return source, composed.node


def unusable(name: str, problems: Iterable[Diagnostic]) -> ConfigError:
    """Return the error of a file that cannot be used."""
    return ConfigError(f"`{name}` cannot be used", diagnostics=in_order(problems))
