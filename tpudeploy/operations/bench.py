"""Measure throughput and latency of a deployment, and flag figures that cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tpudeploy.operations.benchmark_run import BenchmarkRun
from tpudeploy.operations.declaration import Access, Argument, Kind, Operation, profile
from tpudeploy.results import Result, document, result

if TYPE_CHECKING:
    from tpudeploy.domain.benchmark import Cell, Run
    from tpudeploy.loading import OneProfile
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


Contents: TypeAlias = "Mapping[str, bytes] | str | PathLike[str] | Iterable[str | PathLike[str]]"


@result
class WrittenFiles(Result):
    """The files that were written."""

    FORMAT = "files"
    files: tuple[Path, ...]

    def values(self) -> dict[str, Any]:
        return {"files": [str(path) for path in self.files]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("files", {"files": tuple[str, ...]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        return "\n".join(f"Wrote {path}" for path in self.files)


def bench(
    workspace: Workspace,
    profile: OneProfile,
    *,
    concurrency: Sequence[int] = (1, 4, 16, 64),
    context: Sequence[int] = (128, 1024),
    output: Sequence[int] = (128,),
    window_seconds: float = 60.0,
    duration_seconds: float | None = None,
    on_cell: Callable[[Run, Cell], None] | None = None,
) -> BenchmarkRun:
    """Measure a deployment under load, cell by cell. It slows other users down. Cells that cannot fit are skipped.

    `concurrency` are streams at once, `context` and `output` tokens of a prompt and of an answer; each combination is a
    cell, which is measured for at most `window_seconds`. The run is stored after each cell, and ends after
    `duration_seconds`; `benchmark_run` shows it. A deployment of several replicas is measured through its endpoint.

    Raise `errors.QueryFailed` if the deployment has no endpoint, `errors.UsageError` if its server is not the one that
    the profile declares, `errors.Interrupted` after `stop`.
    """
    from tpudeploy import loading
    from tpudeploy.benchmark.cells import grid
    from tpudeploy.domain.benchmark import Bounds, Sweep
    from tpudeploy.operations.benchmark import Benchmarks

    benchmarks = Benchmarks(workspace)
    sweep = Sweep(
        points=grid(*(sorted(set(axis)) for axis in (concurrency, context, output))), window_seconds=window_seconds
    )
    run = benchmarks.run(
        benchmarks.deployment(loading.profile(profile)),
        sweep,
        bounds=Bounds(seconds=duration_seconds),
        on_cell=on_cell,
    )
    return BenchmarkRun(run=run, path=workspace.adapters.runs.path(run))


def bench_import(
    workspace: Workspace,
    files: Contents,
    *,
    model: str = "",
    type: str | None = None,  # noqa: A002 - the command line's word
    usd_per_hour: float | None = None,
) -> BenchmarkRun:
    """Store the results of another client as a run: one file, or several that it wrote about one server.

    `files` are paths, or contents by their names. `model` is the served name (default: the file's), `type` the slice
    type of the server, `usd_per_hour` its price. Raise `errors.UsageError` for a file that cannot be read, has another
    form, or does not belong to the others.
    """
    from tpudeploy.operations.benchmark import Benchmarks

    run = Benchmarks(workspace).imports(_contents(files), model=model, type=type, usd_per_hour=usd_per_hour)
    return BenchmarkRun(run=run, path=workspace.adapters.runs.path(run))


def bench_report(
    workspace: Workspace, run_ids: str | Iterable[str], out: str | Path, *, profile: OneProfile | None = None
) -> WrittenFiles:
    """Write the report of a run as a page, with CSV and Vega-Lite files beside it. The other runs are compared with it.

    Each is an id, the beginning of one, or the name of a published table. With `profile`, the report also shows the
    memory and the last start of its machines. Raise `errors.UsageError` for an unknown run, and for a file that cannot
    be written.
    """
    from tpudeploy import loading
    from tpudeploy.benchmark.compare import compare
    from tpudeploy.benchmark.operating import operating_points
    from tpudeploy.benchmark.runfile import digest
    from tpudeploy.views.report.exports import to_csv, to_vega_lite
    from tpudeploy.views.report.page import Report, page

    runs = [workspace.find_run(each) for each in ([run_ids] if isinstance(run_ids, str) else run_ids)]
    run, loaded, path = runs[0], None if profile is None else loading.profile(profile), Path(out)
    report = Report(
        run=run,
        digest=digest(run),
        points=operating_points(run),
        comparison=compare(runs) if len(runs) > 1 else None,
        details=() if loaded is None else workspace.details(loaded).details,
        timelines=() if loaded is None else workspace.timelines(loaded.spec.name),
    )
    return write_files(
        {path: page(report), path.with_suffix(".csv"): to_csv(run), path.with_suffix(".vl.json"): to_vega_lite(run)}
    )


def write_files(contents: Mapping[Path, str]) -> WrittenFiles:
    """Write these files. Raise `errors.UsageError` for one that cannot be written."""
    from tpudeploy.domain.errors import UsageError

    for path, content in contents.items():
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as cause:
            raise UsageError(f"{path} cannot be written: {cause.strerror or cause}.") from cause
    return WrittenFiles(files=tuple(contents))


def _contents(files: Contents) -> Mapping[str, bytes]:
    """Return the content of each file by its name. Raise `errors.UsageError` for one that cannot be read."""
    from tpudeploy.domain.errors import UsageError

    if isinstance(files, Mapping):
        return files
    contents = {}
    for path in [files] if isinstance(files, str | PathLike) else files:
        try:
            contents[str(path)] = Path(path).read_bytes()
        except OSError as cause:
            raise UsageError(f"`{path}` cannot be read: {cause.strerror or cause}.") from cause
    return contents


def grid_arguments(
    concurrency: tuple[int, ...], context: tuple[int, ...], output: tuple[int, ...]
) -> tuple[Argument, ...]:
    """Return the arguments for the cells to measure, with these defaults."""
    axes = {
        "concurrency": (concurrency, "streams at once"),
        "context": (context, "tokens of a prompt"),
        "output": (output, "tokens of an answer"),
    }
    return tuple(
        Argument(name=name, kind=Kind.COUNTS, default=default, most=_MOST_VALUES, agents=about)
        for name, (default, about) in axes.items()
    )


_MOST_VALUES = 20
WINDOW_SECONDS = Argument(
    name="window_seconds", kind=Kind.SECONDS, default=60.0, most=3600, agents="the longest time to measure a cell"
)

OPERATIONS: Mapping[str, Operation] = {
    "bench": Operation(
        run=bench,
        arguments=(
            profile(),
            *grid_arguments((1, 4, 16, 64), (128, 1024), (128,)),
            WINDOW_SECONDS,
            Argument(name="duration_seconds", kind=Kind.SECONDS, agents="stop after this much measuring"),
        ),
        results=(BenchmarkRun,),
        access=Access.LOAD,
        title="Benchmark",
        tool="bench",
    ),
    "bench_import": Operation(
        run=bench_import,
        arguments=(
            Argument(name="files", kind=Kind.TEXTS, is_required=True, positional=True),
            Argument(name="model", default=""),
            Argument(name="type"),
            Argument(name="usd_per_hour", kind=Kind.AMOUNT),
        ),
        results=(BenchmarkRun,),
        access=Access.CHANGE,
    ),
    "bench_report": Operation(
        run=bench_report,
        arguments=(
            Argument(name="run_ids", kind=Kind.TEXTS, is_required=True, positional=True),
            Argument(name="out", kind=Kind.FILE, is_required=True),
            Argument(name="profile", kind=Kind.PROFILE),
        ),
        results=(WrittenFiles,),
        access=Access.CHANGE,
    ),
}
