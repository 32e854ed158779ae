"""Print the JSON Schema of profiles, for editors, or of a document that --json prints, for programs."""

from __future__ import annotations

import argparse

from tpudeploy.cli.context import Context
from tpudeploy.domain import exits
from tpudeploy.operations.schemas import PROFILE, all_schemas, schema_text


def arguments(parser: argparse.ArgumentParser) -> None:
    names = (PROFILE, *all_schemas())
    help_ = f"The name in the `format` of a document (default: {PROFILE}): {', '.join(names)}."
    parser.add_argument("what", metavar="WHAT", nargs="?", choices=names, default=PROFILE, help=help_)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.json:
        context.reply.set_text(schema_text(args.what))
    else:
        context.terminal.verbatim(schema_text(args.what))
    return exits.SUCCESS
