"""CompilePlan and Start: the graphs an engine compiles before it serves, and how long that should take."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen


@frozen
class CompilePlan:
    """`graphs` counts by the engine's own names, as its log has them ("Precompile backbone --> …")."""

    token_buckets: tuple[int, ...]
    request_buckets: tuple[int, ...]
    graphs: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.graphs.values())


@frozen
class Group:
    """Graphs of one kind: how many, and the seconds that each takes to compile."""

    count: int
    seconds: float


@frozen
class Start:
    """From the container's start to the first answer, in seconds; `basis` says what the figures rest on.

    Cold: `process_seconds` to the first weight, `weights_seconds`, the `groups` of graphs in the order in which they
    are compiled, `ready_seconds` from the last graph to the first answer.
    """

    cold_seconds: float
    warm_seconds: float
    basis: str
    process_seconds: float = 0.0
    weights_seconds: float = 0.0
    groups: tuple[Group, ...] = ()
    ready_seconds: float = 0.0

    def compile_seconds(self, graphs: int) -> float:
        """Of the first so many."""
        left, seconds = graphs, 0.0
        for group in self.groups:
            seconds += min(left, group.count) * group.seconds
            left -= min(left, group.count)
        return seconds
