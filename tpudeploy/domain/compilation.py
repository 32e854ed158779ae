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
class Start:
    """From the container's start to the first answer, in seconds; `basis` says what the figures rest on."""

    cold_seconds: float
    warm_seconds: float
    basis: str
