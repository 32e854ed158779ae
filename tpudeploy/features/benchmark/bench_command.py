"""Measure throughput and latency, and flag figures that cannot be trusted. Every run is kept."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence

from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.state.disk import MAX_BYTES
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.cli.operation_command import add_argument, add_options, option_values, show
from tpudeploy.domain import exits
from tpudeploy.domain.deployment import API_KEY
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.names import address
from tpudeploy.features.benchmark.bench_operation import OPERATIONS, usage
from tpudeploy.features.benchmark.cell_rows import CellRows
from tpudeploy.features.benchmark.documents import replica_runs
from tpudeploy.features.benchmark.run import Run
from tpudeploy.features.benchmark.runs_operation import BenchmarkRun
from tpudeploy.loading import Profile
from tpudeploy.workspace import Workspace

_ROW = OPERATIONS["bench"]


VERBS: Mapping[str, str] = {
    "import": "Take over results that another client wrote, or a table of GKE Inference Quickstart.",
    "list": "List the runs that are kept.",
    "show": "Show one run again.",
    "trend": "Compare one run with the earlier runs of its deployment.",
    "report": "Write a page about one or more runs.",
}
_OF_IMPORT = ("model", "type", "usd_per_hour")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="PROFILE", nargs="*", help="The profile to measure, unless --url names it.")
    options.overlays(parser)
    add_options(parser, _ROW)
    options.backend(parser)


def verb_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    match verb:
        case "import":
            parser.add_argument("files", metavar="FILE", nargs="+", help="What the other client wrote.")
            for name in _OF_IMPORT:
                add_argument(parser, _ROW.argument(name))
            add_argument(parser, OPERATIONS["import_benchmarks"].argument("context"))
        case "show" | "trend":
            parser.add_argument("id", metavar="ID", help="The id of a run, or its beginning.")
        case "report":
            _add_report_arguments(parser)
    options.backend(parser)


def _add_report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="ID", nargs="+", help="The ids of runs, or their beginnings.")
    about = "The page to write, with CSV and Vega-Lite files beside it; or Markdown (.md), or CSV alone (.csv)."
    parser.add_argument("-o", "--out", metavar="FILE", help=about)
    about = "The deployed profile, to show its memory and its last start."
    options.option(parser, "profile", about, metavar="PROFILE")
    options.overlays(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    match args.verb:
        case "list":
            return _list(context)
        case "show":
            return _show(context, args.id)
        case "trend":
            result = context.workspace().benchmark_trend(args.id)
            show(result, context)
            return result.exit_code
        case "import":
            return _import(args, context)
        case "report":
            return _report(args, context)
    if len(args.words) > 1:
        raise usage()
    return _measure(args, context)


def _measure(args: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace(args.words)
    profile = context.load(args.words, args)[0] if args.words else None
    indexes = () if profile is None else workspace.replica_indexes(profile)
    has_router = profile is not None and "router" in (workspace.endpoint(profile.name) or {})
    if len(indexes) <= 1 or has_router or args.replica is not None or args.resume is not None:
        result = _run(args, context, workspace, profile, args.replica)
        show(result, context)
        return _exit_code([result.run])
    assert profile is not None
    return _measure_each(args, context, workspace, profile, indexes)


def _measure_each(
    args: argparse.Namespace, context: Context, workspace: Workspace, profile: Profile, indexes: Sequence[int]
) -> int:
    """Measure one replica after the other, a run each: without a router, nothing spreads requests over all of them."""
    runs = []
    for index in indexes:
        context.terminal.talk(f"{address(profile.name, index)}:")
        try:
            result = _run(args, context, workspace, profile, index)
        except QueryFailed as error:
            context.terminal.explain(f"Warning: {error.message} It is not measured. {error.hint}".rstrip())
            continue
        runs.append(result.run)
        if not args.json:
            show(result, context)
    if args.json:
        context.reply.set(replica_runs(runs))
    return _exit_code(runs) if len(runs) == len(indexes) else exits.ERROR


def _run(
    args: argparse.Namespace, context: Context, workspace: Workspace, profile: Profile | None, replica: int | None
) -> BenchmarkRun:
    values = {**option_values(_ROW, args), "replica": replica}
    if args.resume is not None:
        values = options.without_environment(_ROW.arguments, values)
    rows = CellRows(context.terminal)
    with stopping_gracefully(workspace.adapters.stop, rows.talk):
        given = _ROW.grouped({**values, "api_key": os.environ.get(API_KEY)})
        return workspace.bench(profile, **given, on_point=rows.begin_cell, on_cell=rows.end_cell)


def _exit_code(runs: Sequence[Run]) -> int:
    """Return ERROR if all measured cells of any run failed."""
    for run in runs:
        measured = [cell for cell in run.cells if cell.figures is not None]
        if measured and all(cell.status == "failed" for cell in measured):
            return exits.ERROR
    return exits.SUCCESS


def _import(args: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace()
    files = {name: _content(context, name) for name in args.files}
    facts = {"model": args.model or "", "type": args.type, "usd_per_hour": args.usd_per_hour}
    result = workspace.import_benchmarks(files, **facts, context=args.context)
    show(workspace.benchmark_run(result.runs[0].id) if len(result.runs) == 1 else result, context)
    return exits.SUCCESS


def _content(context: Context, name: str) -> bytes:
    try:
        return read_file(context.folder / name, MAX_BYTES)
    except OSError as cause:
        raise UsageError(f"`{name}` cannot be read: {cause.strerror or cause}.") from cause


def _show(context: Context, id_: str) -> int:
    show(context.workspace().benchmark_run(id_), context)
    return exits.SUCCESS


def _report(args: argparse.Namespace, context: Context) -> int:
    if args.out is None:
        raise UsageError("`bench report` needs an output file.", hint="tpudeploy bench report ID -o report.html")
    profile = None if args.profile is None else context.load([args.profile], args)[0]
    workspace = context.workspace([] if args.profile is None else [args.profile])
    result = workspace.bench_report(args.ids, context.folder / args.out, profile=profile)
    context.terminal.talk(str(result))
    context.reply.set(result.to_dict())
    return exits.SUCCESS


def _list(context: Context) -> int:
    show(context.workspace().benchmark_runs(), context)
    return exits.SUCCESS
