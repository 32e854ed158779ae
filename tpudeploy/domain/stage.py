"""How far a boot has come, in a few words and numbers."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class Stage:
    """`done` `of` are graphs while it compiles, per cent while something is fetched or loaded; None where not known.

    `left_seconds` until it should serve, by the plan as corrected so far; None where nobody can tell. `is_least`: more
    is to come that nobody knows the length of.
    """

    name: str
    done: int | None = None
    of: int | None = None
    left_seconds: float | None = None
    is_least: bool = False
