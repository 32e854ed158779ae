"""Compile a profile's graphs for its slice without a chip: the room that its programs need, or libtpu's refusal.

The engine's own precompile loop runs in an environment that has vllm-tpu (`--python`), for chips that are absent. A
bucket takes minutes on two cores. The result is a file that grows with each graph: the same command continues it, and
it can be shared. `tpudeploy size --compiled FILE` takes the program room from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tpudeploy.features.compile import CompiledGraph, program_bytes
from tpudeploy.operations.declaration import Access, Argument, ArgumentKind, Operation, profile
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from tpudeploy.loading import OneProfile
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace

FOLDER = "compiled"
_HOUR = 3_600.0
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


def compile_profile(
    workspace: Workspace,
    profile: OneProfile,
    *,
    python: str = "",
    output: str | Path = FOLDER,
    only: str = "",
    timeout: float = 6 * _HOUR,
    on_message: Callable[[str], None] | None = None,
) -> Compiled:
    """Compile the graphs of a profile for its slice, in a process of `python`, which has vllm-tpu.

    A file below `output` keeps each graph as it is compiled, and a later call continues there. `only` are words of the
    graphs to compile, with commas between.

    Raise `errors.ConfigError` for `model.config`, `errors.UsageError` without a config or the Python, and
    `errors.QueryFailed` for what the engine refuses.
    """
    from tpudeploy.features.compile.service import compile_graphs

    words = tuple(word for word in only.split(",") if word)
    return compile_graphs(
        profile,
        python=python,
        folder=workspace.adapters.folder / output,
        only=words,
        seconds=timeout,
        on_message=on_message or (lambda _: None),
    )


PYTHON = Argument(
    name="python",
    help="The Python of an environment with vllm-tpu, for example v/bin/python.",
    metavar="PATH",
    is_required=True,
)
OPERATION = Operation(
    run=compile_profile,
    arguments=(
        profile(),
        PYTHON,
        Argument(
            name="output",
            option="out",
            help=f"The folder for the results (default: {FOLDER}).",
            metavar="FOLDER",
            default=FOLDER,
        ),
        Argument(
            name="only", help="Words of the graphs to compile, for example backbone.", metavar="WORDS", default=""
        ),
        Argument(
            name="timeout",
            help="How long it may take (default: 6h).",
            kind=ArgumentKind.DURATION,
            metavar="DURATION",
            default=6 * _HOUR,
        ),
    ),
    results=(Compiled,),
    access=Access.OFFLINE,
    title="Compile",
)
