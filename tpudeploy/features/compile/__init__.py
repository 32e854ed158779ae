"""Ask the engine itself, in an environment that has it, what a model and its programs take: no chip is needed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledGraph:
    """A program that libtpu compiled, or the compiler's refusal in its own words.

    `temp_bytes` is reserved while it runs, `code_bytes` for as long as it is loaded. `cycles` is the compiler's own
    estimate of its fusions, without attention kernels and the host.
    """

    graph: str
    function: str = ""
    temp_bytes: int = 0
    code_bytes: int = 0
    cycles: int = 0
    seconds: float = 0.0
    refusal: str = ""


def program_bytes(graphs: tuple[CompiledGraph, ...]) -> int:
    """Return the room that these programs need: the code of all, and the largest program's temporary arrays."""
    return sum(graph.code_bytes for graph in graphs) + max((graph.temp_bytes for graph in graphs), default=0)
