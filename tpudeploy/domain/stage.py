"""The progress of a boot, in a few words and numbers."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Stage:
    """The progress. `done` and `of` count graphs during compilation, else percent; None where unknown.

    `left_seconds` is the estimate until it serves, or None. `is_least`: steps of unknown duration follow.
    """

    name: str
    done: int | None = None
    of: int | None = None
    left_seconds: float | None = None
    is_least: bool = False
