"""What only the command line has of `destroy`: the plan that is approved, and names in place of profiles."""

from __future__ import annotations

import argparse

from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context, LoadedProfiles
from tpudeploy.cli.operation_command import add_arguments
from tpudeploy.cli.progress import event_printer
from tpudeploy.operations.destroy import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    paths = [word for word in args.profiles if context.is_profile(word)]
    loaded = context.load_each(paths, args) if paths else LoadedProfiles(valid=(), invalid={})
    workspace = context.workspace(paths, lock_timeout=args.lock_timeout)
    by_name = (workspace.recorded_profile(word, args.sets) for word in args.profiles if word not in paths)
    emit = event_printer(context.terminal, as_json=args.json)
    plan = workspace.plan(
        [*loaded.valid, *by_name], destroy=True, target=args.target, invalid=loaded.invalid, on_event=emit
    )
    return carry_out(args, context, workspace, plan, OPERATION)
