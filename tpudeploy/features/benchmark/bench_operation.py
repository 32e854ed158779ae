"""Measure throughput and latency of a deployment, and flag figures that cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from annotated_types import Le

from tpudeploy import loading
from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state.disk import MAX_BYTES
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.benchmark.cells import grid
from tpudeploy.features.benchmark.compare import compare
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.operating import operating_points
from tpudeploy.features.benchmark.report.exports import to_csv, to_vega_lite
from tpudeploy.features.benchmark.report.markdown import to_markdown
from tpudeploy.features.benchmark.report.page import ReportContent, page
from tpudeploy.features.benchmark.run import Cell, Driver, Run, Slo, Sweep
from tpudeploy.features.benchmark.runfile import digest
from tpudeploy.features.benchmark.runs_operation import BenchmarkRun, Runs
from tpudeploy.features.benchmark.service import Benchmarks, bounds_of
from tpudeploy.features.benchmark.store import find_run, stored_runs
from tpudeploy.features.benchmark.subject import Target
from tpudeploy.loading import OneProfile
from tpudeploy.operations.arguments import Agents, AProfile, Arg, ArgumentGroup, Count, Counts, Index, Seconds, Usd
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.operations.written_files import WrittenFiles, write_files
from tpudeploy.workspace import Workspace

DRIVERS = ("vllm", "guidellm", "aiperf")
Contents: TypeAlias = "Iterable[str | PathLike[str]] | Mapping[str, bytes] | str | PathLike[str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """A server to measure by its URL, without a profile.

    `model` is its served name (default: the first), `type` its slice type, `usd_per_hour` the price of that, `api_key`
    what the server requires.
    """

    url: Annotated[
        str, Arg("Measure this address instead of a profile's; its API key is read from VLLM_API_KEY.", agents=None)
    ]
    model: Annotated[
        str | None,
        Arg("With --url or import: the served model name (default: the first, or the file's).", agents=None),
    ] = None
    type: Annotated[
        str | None,
        Arg("With --url or import: its slice type, e.g. v6e-4, to detect impossible figures.", agents=None),
    ] = None
    usd_per_hour: Annotated[Usd | None, Arg("With --url: the price of its slice in USD/h.", agents=None)] = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The cells to measure: each combination of these. None is the default of the command."""

    concurrency: Annotated[
        Counts | None, Arg("Concurrent streams, e.g. 1..2048.", resumed=True, agents=Agents("streams at once"))
    ] = None
    context: Annotated[Counts | None, Arg("Tokens in a prompt.", resumed=True, agents=Agents("tokens of a prompt"))] = (
        None
    )
    output: Annotated[
        Counts | None, Arg("Tokens in an answer.", resumed=True, agents=Agents("tokens of an answer"))
    ] = None
    window_seconds: Annotated[
        Seconds | None,
        Le(3600),
        Arg(
            "Measure each cell for TIME (default: 3 requests of each stream, at most 60s).",
            name="window",
            resumed=True,
            agents=Agents("how long to measure each cell; by default 3 requests of each stream, at most 60 s"),
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCells(Cells):
    """The cells to measure, and with which client."""

    driver: Annotated[
        str | None,
        Arg("Measure with an installed client: vllm, guidellm or aiperf.", choices=DRIVERS, agents=None),
    ] = None
    tokenizer: Annotated[
        str | None,
        Arg("With --driver: a model id, or a folder (default: the model's).", metavar="NAME", agents=None),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions(ClientCells):
    """What to measure, and how. None is the default of the command.

    `concurrency` are streams at once, `context` and `output` tokens of a prompt and of an answer; each combination is a
    cell, which is measured for at most `window_seconds`. With `skip_oversubscribed`, cells with more streams than can
    run at once are listed and not measured. `slo_ttft` and `slo_tpot` are the seconds within which a request counts as
    goodput. `seed` makes the same prompts again. `driver` is an installed client (vllm, guidellm or aiperf),
    `tokenizer` the model id or folder for its prompts.
    """

    skip_oversubscribed: Annotated[
        bool,
        Arg("List cells with more streams than can run at once, without measuring them.", resumed=True, agents=None),
    ] = False
    slo_ttft: Annotated[
        Seconds | None,
        Arg(
            "Count as goodput only requests whose first token arrives within TIME, e.g. 500ms.",
            resumed=True,
            agents=None,
        ),
    ] = None
    slo_tpot: Annotated[
        Seconds | None,
        Arg("Count as goodput only requests with at most TIME per output token, e.g. 50ms.", resumed=True, agents=None),
    ] = None
    seed: Annotated[
        str | None,
        Arg(
            "Use the same prompts again; prefix caching then shows in the figures.",
            metavar="TEXT",
            resumed=True,
            agents=None,
        ),
    ] = None

    @property
    def client(self) -> Driver:
        """Return the load client. Raise as `driver_named`."""
        return driver_named(self.driver, window_seconds=self.window_seconds)

    def sweep(self, grid: Grid) -> Sweep:
        """Return the cells, with the values of `grid` where none are named, and how to measure each."""
        return Sweep(
            points=grid.points(self.concurrency, self.context, self.output),
            slo=Slo(ttft_seconds=self.slo_ttft, tpot_seconds=self.slo_tpot),
            window_seconds=self.window_seconds or WINDOW,
            asks_oversubscribed=not self.skip_oversubscribed,
            seed=self.seed or "",
            is_whole_window=self.window_seconds is not None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The cells of a sweep that names no others."""

    concurrency: tuple[int, ...]
    context: tuple[int, ...]
    output: tuple[int, ...]

    def points(self, *axes: Sequence[int] | None) -> tuple[Point, ...]:
        """Return each combination of these values; an axis that is None has the values of this grid."""
        defaults = (self.concurrency, self.context, self.output)
        return grid(*(sorted(set(axis or default)) for axis, default in zip(axes, defaults, strict=True)))


GRID = Grid(concurrency=(1, 4, 16, 64, 256), context=(128, 1024, 8192), output=(128,))
WINDOW = 60.0  # seconds
_BY_TIME = ("guidellm",)  # max_duration; see CLIENTS in features/benchmark/load/installed.py
_FEWER = Grid(concurrency=(1, 4, 16, 64), context=(128, 1024), output=(128,))


def bench(
    workspace: Workspace,
    profile: AProfile | None = None,
    options: Annotated[SweepOptions | None, ArgumentGroup(SweepOptions, defaults=GRID, agents=_FEWER)] = None,
    *,
    address: Annotated[ServerAddress | None, ArgumentGroup(ServerAddress)] = None,
    duration_seconds: Annotated[
        Seconds | None,
        Arg(
            "Stop after measuring for TIME, e.g. 2h.",
            name="duration",
            agents=Agents("stop after this much measuring"),
        ),
    ] = None,
    max_cost: Annotated[Usd | None, Arg("Stop when the slice has cost this much meanwhile.", agents=None)] = None,
    replica: Annotated[
        Index | None,
        Arg(
            "With several replicas: measure only this one, counted from 0 (default: one after the other).",
            agents=None,
        ),
    ] = None,
    resume: Annotated[
        str | None, Arg("Continue a run: measure only the remaining cells.", metavar="ID", agents=None)
    ] = None,
    on_point: Callable[[Run, Point], None] | None = None,
    on_cell: Callable[[Run, Cell], None] | None = None,
) -> BenchmarkRun:
    """Measure a deployment under load, cell by cell. It slows other users down. Cells that cannot fit are skipped.

    `address` measures a server by its URL instead of a profile's. A deployment of several replicas is measured through
    its router, which all of them are behind, or at the `replica` of that index; without a router, at its first replica.

    The run is stored after each cell, and ends after `duration_seconds` of measuring, or once the slice has cost
    `max_cost` USD meanwhile; `resume`, its id, measures the remaining cells. `on_point` is called before each cell and
    `on_cell` after it. `benchmark_run` shows the run.

    Raise `errors.QueryFailed` if the deployment has no endpoint, `errors.UsageError` if its server is not the one that
    the profile declares and for options that do not go together, `errors.BenchFailed` if an installed client fails,
    `errors.Interrupted` after `stop`.
    """
    options = options or SweepOptions()
    benchmarks, client = Benchmarks(workspace), options.client
    if profile is not None and address is None:
        run = None if resume is None else stored_runs(workspace.adapters).find(resume)
        target = _deployment(benchmarks, profile, replica, run)
    elif profile is None and address is not None:
        target = benchmarks.address(
            address.url,
            model=address.model or "",
            type=address.type,
            usd_per_hour=address.usd_per_hour,
            api_key=address.api_key,
        )
    else:
        raise usage()
    bounds = bounds_of(
        duration_seconds,
        max_cost,
        usd_per_hour=target.subject.usd_per_hour,
        hint="Set it with --usd-per-hour, or use --duration.",
    )
    tokenizer = options.tokenizer or ""
    benchmarks.check_client(target, client, tokenizer=tokenizer)
    run = benchmarks.run(
        target,
        options.sweep(GRID),
        resume=resume,
        bounds=bounds,
        driver=client,
        tokenizer=tokenizer,
        on_point=on_point,
        on_cell=on_cell,
    )
    return BenchmarkRun(run=run, path=stored_runs(workspace.adapters).path(run))


def usage() -> UsageError:
    """Return the error for a command that does not say what to measure."""
    return UsageError(
        "`bench` measures one profile, or one address.",
        hint="tpudeploy bench PROFILE, bench --url http://HOST:8000, bench import FILE, bench list, bench show ID, or "
        "bench report ID -o report.html.",
    )


def _deployment(benchmarks: Benchmarks, one: OneProfile, replica: int | None, resumed: Run | None) -> Target:
    """Return a deployment as a target, or its replica. A run that is resumed has its replica already."""
    loaded = loading.profile(one)
    if resumed is not None:
        return benchmarks.deployment(loaded, resumed.subject.replica)
    return benchmarks.deployment(loaded, "" if replica is None else benchmarks.replica(loaded, replica))


def bench_import(
    workspace: Workspace,
    files: Annotated[Contents, Arg()],
    *,
    model: str = "",
    type: str | None = None,  # noqa: A002 - the command line's word
    usd_per_hour: float | None = None,
) -> BenchmarkRun:
    """Store the results of another client as a run: one file, or several that it wrote about one server.

    `files` are paths, or contents by their names. `model` is the served name (default: the file's), `type` the slice
    type of the server, `usd_per_hour` its price. Raise `errors.UsageError` for a file that cannot be read, has another
    form, or does not belong to the others, and for a table of several servers, for which `import_benchmarks` is.
    """
    imported = _imported(workspace, files, model=model, type=type, usd_per_hour=usd_per_hour)
    if len(imported) > 1:
        hint = "Choose one by model and type, or use `import_benchmarks`."
        raise UsageError(f"The table is of {len(imported)} servers.", hint=hint)
    runs = stored_runs(workspace.adapters)
    runs.keep(imported[0])
    return BenchmarkRun(run=imported[0], path=runs.path(imported[0]))


def import_benchmarks(
    workspace: Workspace,
    files: Annotated[Contents, Arg()],
    *,
    model: str = "",
    type: str | None = None,  # noqa: A002 - the command line's word
    usd_per_hour: float | None = None,
    context: Annotated[
        Count | None, Arg("Tokens in a prompt, if the files don't say.", variable="import-context")
    ] = None,
) -> Runs:
    """Store the results of another client, or a table of GKE Inference Quickstart: a run for each server in it.

    The arguments are those of `bench_import`. Of a table of several servers, `model` and `type` choose. `context` is
    the tokens of a prompt where the files don't state them. Raise `errors.UsageError` as `bench_import` does.
    """
    imported = _imported(workspace, files, model=model, type=type, usd_per_hour=usd_per_hour, context=context)
    runs = stored_runs(workspace.adapters)
    for run in imported:
        runs.keep(run)
    return Runs(runs=imported)


def _imported(workspace: Workspace, files: Contents, **facts: Any) -> tuple[Run, ...]:
    return Benchmarks(workspace).imports(_contents(files), **facts)


def bench_report(
    workspace: Workspace,
    run_ids: Annotated[Iterable[str], Arg()],
    out: str | Path,
    *,
    profile: OneProfile | None = None,
) -> WrittenFiles:
    """Write a report of runs: charts that show all of them together, and the operating points and tables of the first.

    The ending of `out` decides its format: .md is Markdown and .csv a table, both of all runs. Anything else is a page,
    and CSV and Vega-Lite files of the same go beside it. Each run is an id, the beginning of one, or the name of a
    published table. With `profile`, the page also shows the memory and the last start of its machines. Raise
    `errors.UsageError` for an unknown run, and for a file that cannot be written.
    """
    runs = [find_run(workspace.adapters, each) for each in run_ids]
    run, loaded, path = runs[0], None if profile is None else loading.profile(profile), Path(out)
    comparison = compare(runs) if len(runs) > 1 else None
    here = workspace.adapters.folder
    if path.suffix == ".md":
        return write_files({path: to_markdown(runs, comparison)}, here=here)
    if path.suffix == ".csv":
        return write_files({path: to_csv(runs)}, here=here)
    report = ReportContent(
        run=run,
        digest=digest(run),
        points=operating_points(run),
        comparison=comparison,
        details=() if loaded is None else workspace.details(loaded).details,
        timelines=() if loaded is None else workspace.timelines(loaded.name),
    )
    return write_files(
        {path: page(report), path.with_suffix(".csv"): to_csv(runs), path.with_suffix(".vl.json"): to_vega_lite(runs)},
        here=here,
    )


def _contents(files: Contents) -> Mapping[str, bytes]:
    """Return the content of each file by its name. Raise `errors.UsageError` for one that cannot be read."""
    if isinstance(files, Mapping):
        return files
    contents = {}
    for path in [files] if isinstance(files, str | PathLike) else files:
        try:
            contents[str(path)] = read_file(Path(path), MAX_BYTES)
        except OSError as cause:
            raise UsageError(f"`{path}` cannot be read: {cause.strerror or cause}.") from cause
    return contents


def driver_named(name: str | None, *, window_seconds: float | None = None) -> Driver:
    """Return the load client of that name, None for our own.

    Raise `errors.UsageError` for an unknown one, and for one that measures a number of requests where `window_seconds`
    are wanted: it would end sooner or later.
    """
    if name is None or name == Driver.TPUDEPLOY:
        return Driver.TPUDEPLOY
    if name not in DRIVERS:
        raise UsageError(f"There is no load client `{name}`.", hint=f"There are {', '.join(DRIVERS)}.")
    if window_seconds is not None and name not in _BY_TIME:
        raise UsageError(
            f"`--driver {name}` measures a number of requests, so a cell does not last {window_seconds:g} s.",
            hint=f"Leave out --window, or measure with ours or with {', '.join(_BY_TIME)}.",
        )
    return Driver(name)


OPERATIONS: Mapping[str, Operation] = {
    "bench": Operation(
        run=bench,
        results=(BenchmarkRun,),
        access=Access.LOAD,
        title="Benchmark",
        tool="bench",
    ),
    "bench_import": Operation(
        run=bench_import,
        results=(BenchmarkRun,),
        access=Access.CHANGE,
    ),
    "import_benchmarks": Operation(
        run=import_benchmarks,
        results=(Runs,),
        access=Access.CHANGE,
    ),
    "bench_report": Operation(
        run=bench_report,
        results=(WrittenFiles,),
        access=Access.CHANGE,
    ),
}
