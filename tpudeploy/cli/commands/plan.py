"""What only the command line has of `plan`: saved plans, new pins, and an exit code for changes."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tpudeploy.adapters import plan_files
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, prepare, show
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.plan import OPERATION
from tpudeploy.planning import planfile
from tpudeploy.plans import Plan


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.option(parser, "out", "Save the plan for `tpudeploy apply FILE`.", metavar="FILE", type=Path)
    options.flag(parser, "detailed-exitcode", "Exit 2 if there are changes, or engines to verify again.")
    options.flag(parser, "pin", "Look up tags and revisions again first, and pin them in tpudeploy.lock.json.")


def run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    if args.pin and (args.destroy or args.refresh_only):
        raise UsageError(
            "-pin works only with a plan of changes to apply.", hint="Leave out -destroy and -refresh-only."
        )
    call = prepare(OPERATION, args, context)
    if args.pin and not call.opened.pin(call.values["profiles"], on_event=call.values["on_event"]):
        terminal.talk("No tag or revision has moved: the pins are unchanged.")
    plan = call.opened.plan(**call.values)
    show(plan, context)
    if args.out is not None:
        plan_files.write(context.folder / args.out, planfile.dumps(plan), is_ours=planfile.is_plan, here=context.folder)
        terminal.talk(f"\n{_saved_message(args.out, plan)}")
    if plan.worst_error is not None:
        return plan.worst_error.exit_code
    return exits.CHANGES if args.detailed_exitcode and plan.has_work else exits.SUCCESS


def _saved_message(path: Path, plan: Plan) -> str:
    """Return Terraform's sentences. A plan that cannot be applied is saved to be read."""
    if plan.is_forbidden:
        return f"Saved the plan to: {path}. It cannot be applied: a check forbids it."
    command = shlex.join(["tpudeploy", "apply", str(path)])
    return f"Saved the plan to: {path}\n\nTo perform exactly these actions, run:\n    {command}"
