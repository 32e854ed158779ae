"""Release a lock left behind by a crashed run. If that run is still alive, it cannot save anything afterwards."""

from __future__ import annotations

import argparse

from tpudeploy.cli import operation_command, options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.operations.force_unlock import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    options.flag(parser, "force", "Skip the approval prompt.")
    operation_command.add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    args.id = context.workspace().adapters.states.find_lock(args.id)
    if not args.force:
        question = "Do you really want to force-unlock? A run that is still alive loses its lock and stops."
        approve(context, question, otherwise="Pass -force once you are sure that no run uses it.")
    return operation_command.run(OPERATION, args, context)
