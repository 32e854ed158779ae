"""Delete everything that was created for PROFILE, and wait until it is gone."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments
from tpudeploy.cli.progress import event_printer
from tpudeploy.operations.destroy import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.flag(parser, "auto-approve", "Skip the approval prompt.")


def run(args: argparse.Namespace, context: Context) -> int:
    loaded = context.load_each(args.profiles, args)
    workspace = context.workspace(args.profiles, lock_timeout=args.lock_timeout)
    emit = event_printer(context.terminal, as_json=args.json)
    plan = workspace.plan(loaded.valid, destroy=True, target=args.target, invalid=loaded.invalid, on_event=emit)
    question = "Do you really want to destroy this? There is no undo."
    return carry_out(args, context, workspace, plan, question=question)
