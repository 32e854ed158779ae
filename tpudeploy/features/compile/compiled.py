"""What compiling a profile's graphs gives: each program's room, or the compiler's refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tpudeploy.features.compile import CompiledGraph, program_bytes
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint

_MIB = 2**20


@result
class Compiled(Result):
    """The programs of a profile on its slice. `is_complete`: every graph of the engine's precompile loop is there."""

    FORMAT = "compiled"
    model: str
    accelerator_type: str
    engine: str
    libtpu: str
    settings: Annotated[Mapping[str, Any], "what the engine was asked with"]
    weights_bytes_per_chip: int
    num_blocks: int
    graphs: tuple[CompiledGraph, ...]
    is_complete: bool
    path: Annotated[str, "the file"] = ""

    @property
    def versions(self) -> str:
        """The engine's and libtpu's versions, by which files are kept apart."""
        return f"{self.engine}-{self.libtpu}"

    @property
    def exit_code(self) -> int:
        """Return 13 if the compiler refuses a graph: such a server would not start."""
        return 13 if any(graph.refusal for graph in self.graphs) else 0

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        lines = [
            f"{graph.graph:<60} {graph.temp_bytes / _MIB:8.1f} MiB temporary {graph.code_bytes / _MIB:6.1f} MiB code"
            + (f"  refused: {graph.refusal}" if graph.refusal else "")
            for graph in self.graphs
        ]
        extent = "All graphs" if self.is_complete else "The graphs so far"
        by = f"tpu-inference {self.engine} and libtpu {self.libtpu}"
        room = f"{program_bytes(self.graphs) / _MIB:,.1f} MiB a chip"
        return "\n".join(
            [*lines, f"{extent} ({len(self.graphs)}) for {self.accelerator_type} by {by} need {room}.", self.path]
        )
