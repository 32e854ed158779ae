"""Runs beside each other, and beside published figures: throughput, latency, tokens per dollar, what more chips bring.

A run is named by its id or the beginning of it (`tpudeploy bench list`), a published table by its name (`--published`).
With a profile and --ab PATH=A,B two values of one flag are deployed in turns on the slice that serves, measured, and
held against each other with confidence intervals; the id of such an A/B shows it again.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import ab, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

_MEASURES = ("requests", "output", "input", "ttft", "ttft-p99", "tpot", "tokens-per-usd")
_FEWEST = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUN | PROFILE | A/B",
        nargs="*",
        help="the id of a run, or the name of a published table; or a profile, with --ab; or the id of an A/B",
    )
    options.option(
        parser,
        "by",
        f"what to compare, and what an A/B is decided by: {', '.join(_MEASURES)}",
        choices=_MEASURES,
        default=ab.BY,
    )
    parser.add_argument("--published", action="store_true", help="list the published tables")
    ab.arguments(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.cli import documents
    from tpudeploy.cli.reporting import named
    from tpudeploy.core.bench.compare import compare
    from tpudeploy.core.bench.published import published
    from tpudeploy.domain.comparison import Measure
    from tpudeploy.views import compare as view

    if ab.is_meant(given):
        return ab.run(given, context)
    ab.check(given)
    if len(given.runs) == 1 and ab.is_id(given.runs[0]):
        return ab.show(given, context)
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
            "`compare` holds runs against each other: name two or more.",
            hint="`tpudeploy bench list` shows yours, `tpudeploy compare --published` those of others.",
        )
    workspace = context.workspace()
    found = compare([named(workspace, name) for name in given.runs])
    measure = Measure(given.by)
    if given.json:
        context.reply.set(documents.comparison(found))
    else:
        terminal.data(view.comparison(found, measure, terminal.paint))
    return exits.SUCCESS
