"""Release a lock left behind by a crashed run. If that run is still alive, it cannot save anything afterwards."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="The id of the lock, as the message of the blocked command shows it.")
    options.flag(parser, "force", "Skip the approval prompt.")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if not args.force:
        question = "Do you really want to force-unlock? A run that is still alive loses its lock and stops."
        approve(context, question, otherwise="Pass -force once you are sure that no run uses it.")
    name = context.workspace().adapters.states.force_unlock(args.id)
    if args.json:
        context.reply.set(documents.unlock(name, args.id))
    else:
        context.terminal.data(f"Released the lock of {name}.")
    return exits.SUCCESS
