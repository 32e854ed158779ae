"""Compare benchmark runs with each other and with published figures, or run an A/B of one flag.

Name a run by its id or the beginning of it (`tpudeploy bench list`), a published table by its name (`--published`).
With a profile and --ab PATH=A,B, the two values of one flag are deployed in turns on the slice that serves, measured,
and compared with confidence intervals. The id of an A/B shows its result again.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import ab, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

_BY = "requests"  # Unless something else is asked for; an A/B chooses by its path.
_MEASURES = ("requests", "output", "input", "ttft", "ttft-p99", "tpot", "tokens-per-usd")
_OF_STARTS = ("start", "start-cold", "start-warm")  # of an A/B alone
_FEWEST = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN | PROFILE | A/B",
        nargs="*",
        help="The ids of runs or names of published tables to compare; or a profile with --ab; or the id of an A/B.",
    )
    options.option(
        parser,
        "by",
        f"The measure to compare, and to decide an A/B by: {', '.join((*_MEASURES, *_OF_STARTS))} (default: {_BY}; "
        "start for an A/B of what only changes starts).",
        choices=(*_MEASURES, *_OF_STARTS),
    )
    parser.add_argument("--published", action="store_true", help="List the published tables.")
    ab.arguments(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.benchmark.compare import compare
    from tpudeploy.benchmark.published import published
    from tpudeploy.cli import documents
    from tpudeploy.cli.reporting import find_run
    from tpudeploy.domain.comparison import Measure
    from tpudeploy.views import compare as view

    if ab.is_requested(given):
        return ab.run(given, context)
    ab.check(given)
    if len(given.runs) == 1 and ab.is_id(given.runs[0]):
        return ab.show(given, context)
    if given.by in _OF_STARTS:
        raise UsageError(f"--by {given.by} goes with --ab: only the repeats of an A/B have starts to compare.")
    terminal = context.terminal
    if given.published:
        runs = tuple(published().values())
        if given.json:
            context.reply.set(documents.runs(runs))
        else:
            terminal.data(view.published(runs, terminal.paint))
        return exits.SUCCESS
    if len(given.runs) < _FEWEST:
        raise UsageError(
            "`compare` needs two or more runs.",
            hint="`tpudeploy bench list` shows yours, `tpudeploy compare --published` those of others.",
        )
    workspace = context.workspace()
    found = compare([find_run(workspace, name) for name in given.runs])
    measure = Measure(given.by or _BY)
    if given.json:
        context.reply.set(documents.comparison(found))
    else:
        terminal.data(view.comparison(found, measure, terminal.paint))
    return exits.SUCCESS
