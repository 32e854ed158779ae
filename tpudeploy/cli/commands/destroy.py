"""Delete everything that was created for PROFILE, and wait until it is gone."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options, planning
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import event_printer


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.flag(parser, "auto-approve", "Skip the approval prompt.")
    options.lock_timeout(parser)
    planning.arguments(parser)
    options.backend(parser)
    options.events(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    loaded = context.load_each(args.profiles, args)
    workspace = context.workspace(args.profiles, lock_timeout=args.lock_timeout)
    tell = event_printer(context.terminal, as_json=args.json)
    arguments = planning.plan_arguments(args, destroy=True)
    plan = workspace.plan(loaded.valid, **arguments, invalid=loaded.invalid, on_event=tell)
    question = "Do you really want to destroy this? There is no undo."
    return carry_out(args, context, workspace, plan, question=question)
