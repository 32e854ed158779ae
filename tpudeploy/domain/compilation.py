"""CompilePlan and PredictedStart: the graphs that an engine compiles before it serves, and the expected duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePlan:
    """The graphs to compile. `graphs` counts them by the engine's names in its log ("Precompile backbone --> …")."""

    token_buckets: tuple[int, ...]
    request_buckets: tuple[int, ...]
    graphs: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.graphs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphGroup:
    """Graphs of one kind: their number, and the seconds that each takes to compile."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStart:
    """The time from the container's start to the first answer, in seconds; `basis` is the source of the figures.

    A cold start consists of `process_seconds` until the first weight, `weights_seconds`, the `groups` of graphs in
    the order of compilation, and `ready_seconds` from the last graph to the first answer.
    """

    cold_seconds: float
    warm_seconds: float
    basis: str
    process_seconds: float = 0.0
    weights_seconds: float = 0.0
    groups: tuple[GraphGroup, ...] = ()
    ready_seconds: float = 0.0

    def compile_seconds(self, graphs: int) -> float:
        """Return the seconds to compile the first `graphs` graphs."""
        remaining, seconds = graphs, 0.0
        for group in self.groups:
            seconds += min(remaining, group.count) * group.seconds
            remaining -= min(remaining, group.count)
        return seconds
