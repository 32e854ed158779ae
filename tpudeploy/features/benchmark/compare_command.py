"""Compare benchmark runs with each other and with published figures.

Name a run by its id or the beginning of it (`tpudeploy bench list`), a published table by its name (`--published`).
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import show
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.benchmark.runs_operation import OPERATIONS

_RUNS = OPERATIONS["benchmark_runs"]
_BY = "requests"  # Unless something else is asked for; an A/B chooses by its path.
_MEASURES = ("requests", "output", "input", "ttft", "ttft-p99", "tpot", "tokens-per-usd")
_START_MEASURES = ("start", "start-cold", "start-warm")  # of an A/B alone


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN | PROFILE | A/B",
        nargs="*",
        help="The ids of runs or names of published tables to compare; or a profile with --ab; or the id of an A/B.",
    )
    measures = (*_MEASURES, *_START_MEASURES)
    options.option(
        parser,
        "by",
        f"The measure to compare, and to decide an A/B by: {', '.join(measures)} (default: {_BY}; "
        "start for an A/B of what only changes starts).",
        choices=measures,
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", help="Write the comparison of runs: a page, or Markdown (.md) or a table (.csv)."
    )
    parser.add_argument("--published", action="store_true", help=_RUNS.argument("published").arg.help)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.by in _START_MEASURES:
        raise UsageError(f"--by {args.by} needs --ab: only the repeats of an A/B have starts to compare.")
    if args.published:
        show(context.workspace().benchmark_runs(published=True), context)
        return exits.SUCCESS
    workspace = context.workspace()
    result = workspace.compare(args.runs, by=args.by)
    show(result, context)
    if args.out is not None:
        context.terminal.talk(str(workspace.bench_report(args.runs, context.folder / args.out)))
    return result.exit_code
