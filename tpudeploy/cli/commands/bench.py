"""Measure throughput and latency, and flag figures that cannot be trusted. Every run is kept.

`bench PROFILE` or `bench --url URL` measures, `bench import FILE...` takes what another client wrote, `bench list` and
`bench show ID` tell what was measured, `bench report ID... -o FILE` makes a page of it.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from tpudeploy.cli import documents, exits, options, sweep_options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import show
from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tpudeploy.benchmark.subject import Target
    from tpudeploy.domain.benchmark import Bounds, Run, Sweep
    from tpudeploy.loading import Profile
    from tpudeploy.operations.benchmark import Benchmarks
    from tpudeploy.workspace import Workspace

_KEY = "VLLM_API_KEY"
GRID = sweep_options.Grid(streams=(1, 4, 16, 64, 256), contexts=(128, 1024, 8192), outputs=(128,))
# What a run that goes on has been told already.
_OF_THE_SWEEP = ("concurrency", "context", "output", "window", "slo_ttft", "slo_tpot", "seed")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        metavar="PROFILE | import FILE | list | show ID | report ID",
        nargs="*",
        help="What to measure or show.",
    )
    options.overlays(parser)
    options.option(parser, "url", "Measure this address instead of a profile's; its API key is read from VLLM_API_KEY.")
    options.option(parser, "model", "With --url or import: the served model name (default: the first, or the file's).")
    options.option(
        parser,
        "type",
        "With --url or import: its slice type, e.g. v6e-4, to detect impossible figures.",
        metavar="TYPE",
    )
    options.option(
        parser, "usd-per-hour", "With --url: the price of its slice in USD/h.", metavar="USD", type=sweep_options.usd
    )
    sweep_options.grid(parser, GRID)
    time: dict[str, Any] = {"metavar": "TIME", "type": options.seconds}
    options.flag(
        parser, "skip-oversubscribed", "List cells with more streams than can run at once, without measuring them."
    )
    options.option(
        parser, "slo-ttft", "Count as goodput only requests whose first token arrives within TIME, e.g. 500ms.", **time
    )
    options.option(
        parser, "slo-tpot", "Count as goodput only requests with at most TIME per output token, e.g. 50ms.", **time
    )
    options.option(parser, "duration", "Stop after measuring for TIME, e.g. 2h.", **time)
    sweep_options.max_cost(parser, "Stop when the slice has cost this much meanwhile.")
    options.option(
        parser, "seed", "Use the same prompts again; prefix caching then shows in the figures.", metavar="TEXT"
    )
    options.option(
        parser,
        "replica",
        "With several replicas: measure only this one, counted from 0 (default: one after the other).",
        metavar="N",
        type=sweep_options.index,
    )
    options.option(parser, "resume", "Continue a run: measure only the remaining cells.", metavar="ID")
    sweep_options.client(parser)
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="With report: the page to write; CSV and Vega-Lite files go beside it."
    )
    options.option(
        parser,
        "profile",
        "With report: the deployed profile, to show its memory and its last start.",
        metavar="PROFILE",
    )
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    match args.words:
        case ["list"]:
            return _list(context)
        case ["show", id_]:
            return _show(args, context, id_)
        case ["import", _, *_]:
            return _import(args, context)
        case ["report", _, *_]:
            return _report(args, context)
        case [profile] if args.url is None:
            return _measure(args, context, profile)
        case [] if args.url is not None:
            return _measure(args, context, None)
    raise UsageError(
        "`bench` measures one profile, or one address.",
        hint="tpudeploy bench PROFILE, bench --url http://HOST:8000, bench import FILE, bench list, bench show ID, or "
        "bench report ID -o report.html.",
    )


def _measure(args: argparse.Namespace, context: Context, profile: str | None) -> int:
    from tpudeploy.operations.benchmark import Benchmarks

    workspace = context.workspace([] if profile is None else [profile])
    benchmarks = Benchmarks(workspace)
    loaded = None if profile is None else context.load([profile], args)[0]
    replicas = _replicas(args, workspace, benchmarks, loaded)
    if len(replicas) == 1:
        run_ = _run(args, context, benchmarks, loaded, replicas[0])
        _tell(run_, args, context, workspace)
        return _exit_code([run_])
    return _measure_each(args, context, benchmarks, loaded, replicas)


def _replicas(
    args: argparse.Namespace, workspace: Workspace, benchmarks: Benchmarks, profile: Profile | None
) -> tuple[str, ...]:
    """The addresses to measure, "" for an address that is no deployment's. Raise `errors.UsageError`."""
    if profile is None:
        return ("",)
    addresses = benchmarks.replicas(profile)
    if args.resume is not None:
        return (workspace.adapters.runs.find(args.resume).subject.replica or addresses[0],)
    if args.replica is None:
        return addresses
    address = f"{profile.spec.name}[{args.replica}]"
    if len(addresses) == 1 and args.replica == 0:
        return addresses
    if address not in addresses:
        raise UsageError(
            f"{profile.spec.name} has no replica {args.replica}.", hint=f"There are: {', '.join(addresses)}."
        )
    return (address,)


def _measure_each(
    args: argparse.Namespace,
    context: Context,
    benchmarks: Benchmarks,
    profile: Profile | None,
    replicas: Sequence[str],
) -> int:
    """One replica after the other, a run each: they share no chips, and a figure of all would hide the slow one."""
    from tpudeploy.domain.errors import QueryFailed

    workspace = context.workspace([] if profile is None else args.words)
    runs = []
    for replica in replicas:
        context.terminal.talk(f"{replica}:")
        try:
            runs.append(_run(args, context, benchmarks, profile, replica))
        except QueryFailed as error:
            context.terminal.talk(f"Warning: {error.message} It is not measured. {error.hint}".rstrip())
            continue
        if not args.json:
            _tell(runs[-1], args, context, workspace)
    if args.json:
        context.reply.set(documents.replica_runs(runs))
    return _exit_code(runs) if len(runs) == len(replicas) else exits.ERROR


def _run(
    args: argparse.Namespace, context: Context, benchmarks: Benchmarks, profile: Profile | None, replica: str
) -> Run:
    from tpudeploy.cli.interrupts import stopping_gracefully
    from tpudeploy.domain.benchmark import Driver

    target, sweep = _target(args, benchmarks, profile, replica), _sweep(args)
    driver, tokenizer = Driver(args.driver or Driver.TPUDEPLOY), args.tokenizer or ""
    bounds, rows = _bounds(args, target), sweep_options.Rows(context.terminal)
    benchmarks.check_client(target, driver, tokenizer=tokenizer)
    rows.begin()
    with stopping_gracefully(benchmarks.stop, rows.talk):
        return benchmarks.run(
            target,
            sweep,
            resume=args.resume,
            bounds=bounds,
            driver=driver,
            tokenizer=tokenizer,
            on_point=rows.begin_cell,
            on_cell=rows.end_cell,
        )


def _exit_code(runs: Sequence[Run]) -> int:
    """An error where every cell that was measured of a run failed."""
    for run in runs:
        measured = [cell for cell in run.cells if cell.figures is not None]
        if measured and all(cell.status == "failed" for cell in measured):
            return exits.ERROR
    return exits.SUCCESS


def _target(args: argparse.Namespace, benchmarks: Benchmarks, profile: Profile | None, replica: str) -> Target:
    if profile is not None:
        return benchmarks.deployment(profile, replica)
    return benchmarks.address(
        _address(args.url),
        model=args.model or "",
        type=args.type,
        usd_per_hour=args.usd_per_hour,
        api_key=os.environ.get(_KEY),
    )


def _sweep(args: argparse.Namespace) -> Sweep | None:
    """None where a run goes on: it has its own."""
    from tpudeploy.domain.benchmark import Slo, Sweep

    if args.resume is not None:
        options_set = [name for name in _OF_THE_SWEEP if getattr(args, name) is not None]
        if options_set:
            raise UsageError(
                f"A run that goes on keeps its own sweep; --{options_set[0].replace('_', '-')} would be another.",
                hint="Leave it out, or leave out --resume and begin anew.",
            )
        return None
    slo = Slo(ttft_seconds=args.slo_ttft, tpot_seconds=args.slo_tpot)
    return Sweep(
        points=sweep_options.points(args, GRID),
        slo=slo,
        window_seconds=args.window or sweep_options.WINDOW,
        asks_oversubscribed=not args.skip_oversubscribed,
        seed=args.seed or "",
    )


def _bounds(args: argparse.Namespace, target: Target) -> Bounds:
    from tpudeploy.domain.benchmark import Bounds

    sweep_options.check_price(args, target.subject.usd_per_hour)
    return Bounds(seconds=args.duration, usd=args.max_cost)


def _import(args: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace()
    files = {name: _content(context, name) for name in args.words[1:]}
    result = workspace.bench_import(files, model=args.model or "", type=args.type, usd_per_hour=args.usd_per_hour)
    _tell(result.run, args, context, workspace)
    return exits.SUCCESS


def _content(context: Context, name: str) -> bytes:
    try:
        return (context.folder / name).read_bytes()
    except OSError as cause:
        raise UsageError(f"`{name}` cannot be read: {cause.strerror or cause}.") from cause


def _show(args: argparse.Namespace, context: Context, id_: str) -> int:
    workspace = context.workspace()
    _tell(workspace.benchmark_run(id_).run, args, context, workspace)
    return exits.SUCCESS


def _report(args: argparse.Namespace, context: Context) -> int:
    if args.out is None:
        raise UsageError("`bench report` needs an output file.", hint="tpudeploy bench report ID -o report.html")
    profile = None if args.profile is None else context.load([args.profile], args)[0]
    workspace = context.workspace([] if args.profile is None else [args.profile])
    result = workspace.bench_report(args.words[1:], context.folder / args.out, profile=profile)
    context.terminal.talk(str(result))
    context.reply.set(result.to_dict())
    return exits.SUCCESS


def _list(context: Context) -> int:
    show(context.workspace().benchmark_runs(), context)
    return exits.SUCCESS


def _tell(run: Run, args: argparse.Namespace, context: Context, workspace: Workspace) -> None:
    from tpudeploy.benchmark.runfile import dumps
    from tpudeploy.benchmark.view import result

    terminal, kept = context.terminal, workspace.adapters.runs.path(run)
    if args.json:
        context.reply.set_text(dumps(run))
    else:
        terminal.data("\n" + result(run, terminal.paint, path=str(kept), width=terminal.width))


def _address(url: str) -> str:
    """http(s)://host:port; what may follow it in a client's settings (/v1) is left out."""
    from urllib.parse import urlsplit

    try:
        where = urlsplit(url)
        is_address = (
            where.scheme in {"http", "https"} and bool(where.hostname) and (where.port is None or where.port > 0)
        )
    except ValueError:
        is_address = False
    if not is_address or where.username is not None:
        raise UsageError(f"`{url}` is not a valid address.", hint="Write it as http://HOST:8000.")
    return f"{where.scheme}://{where.netloc}"
