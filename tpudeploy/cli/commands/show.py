"""Show a saved plan, or the contents of the states. Reads local files and the state backend only."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.plan_text import tell
from tpudeploy.plans import Plan
from tpudeploy.views.show import document, slices_text


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="PLANFILE", nargs="?", help="A saved plan (default: show the states).")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.file is not None:
        tell(Plan.load(context.folder / args.file), context)
        return exits.SUCCESS
    states = context.workspace().remembered()
    if args.json:
        context.reply.set(document(states))
    else:
        context.terminal.data(slices_text(states, context.terminal.paint))
    return exits.SUCCESS
