"""Compile a profile's graphs for its slice without a chip: the room that its programs need, or libtpu's refusal.

The engine's own precompile loop runs in an environment that has vllm-tpu (`--python`), for chips that are absent. A
bucket takes minutes on two cores. The result is a file that grows with each graph: the same command continues it, with
a backend in a bucket on any computer. `tpudeploy size --compiled FILE` takes the program room from it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.compile.compiled import Compiled
from tpudeploy.features.compile.service import compile_graphs
from tpudeploy.features.compile.store import CompiledStore
from tpudeploy.operations.arguments import AProfile, Arg, TimeLimit
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.workspace import Workspace

FOLDER = RECORDS = "compiled"
_HOUR = 3_600.0


def compile_profile(
    workspace: Workspace,
    profile: AProfile,
    *,
    python: Annotated[
        str, Arg("The Python of an environment with vllm-tpu, for example v/bin/python.", metavar="PATH")
    ] = "",
    output: Annotated[
        str | Path, Arg(f"The folder for the results (default: {FOLDER}).", name="out", metavar="FOLDER")
    ] = FOLDER,
    only: Annotated[str, Arg("Words of the graphs to compile, for example backbone.", metavar="WORDS")] = "",
    timeout: Annotated[TimeLimit, Arg("How long it may take (default: 6h).", metavar="DURATION")] = 6 * _HOUR,
    on_message: Callable[[str], None] | None = None,
) -> Compiled:
    """Compile the graphs of a profile for its slice, in a process of `python`, which has vllm-tpu.

    A file below `output` keeps each graph as it is compiled, and a later call continues there; where states are in a
    bucket, it is kept there too, and others continue it. `only` are words of the
    graphs to compile, with commas between.

    Raise `errors.ConfigError` for `model.config`, `errors.UsageError` without a config or the Python, and
    `errors.QueryFailed` for what the engine refuses.
    """
    if not python:
        raise UsageError("compile needs --python PATH, a Python that has vllm-tpu.")
    words = tuple(word for word in only.split(",") if word)
    return compile_graphs(
        profile,
        pins=workspace.adapters.pins.read(),
        python=python,
        store=CompiledStore(workspace.adapters.folder / output, workspace.adapters.shared_records(RECORDS)),
        only=words,
        seconds=timeout,
        on_message=on_message or (lambda _: None),
    )


OPERATION = Operation(
    run=compile_profile,
    results=(Compiled,),
    access=Access.OFFLINE,
    title="Compile",
)
