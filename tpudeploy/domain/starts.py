"""MeasuredStart: how long a server took to start, and what its compile cache held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStart:
    """The start of the server that a run measured, as its log shows it.

    `seconds` is from the container to the first request that it takes; `compile_seconds` is the engine's own word for a
    part of it. `programs_cached` were in the compile cache, of `programs` that were looked up or are there since. None
    is what the log does not tell.
    """

    seconds: float
    compile_seconds: float | None = None
    programs_cached: int | None = None
    programs: int | None = None
