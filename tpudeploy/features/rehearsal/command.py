"""What only the command line has of `rehearse`: approval, and the clean-up after an interrupt."""

from __future__ import annotations

import argparse

from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.interrupts import stopping_gracefully
from tpudeploy.cli.operation_command import add_arguments, prepare, show
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain.errors import Interrupted
from tpudeploy.features.rehearsal.operation import OPERATION, clean_up

_INTERRUPTED = "Interrupted: the rehearsal deletes what it requested. Interrupt again to stop at once."


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    call = prepare(OPERATION, args, context)
    workspace, values = call.opened, {**call.values, "dry_run": True}
    proposal = workspace.rehearse(**values)
    if args.dry_run:
        show(proposal, context)
        return proposal.exit_code
    terminal.explain(proposal.as_text(terminal.paint))
    approve(args, context, OPERATION)
    emit = event_printer(terminal)
    try:
        with stopping_gracefully(workspace.adapters.stop, terminal.talk, message=_INTERRUPTED, is_last=False):
            result = workspace.rehearse(**{**values, "dry_run": False, "on_event": emit})
    except (KeyboardInterrupt, Interrupted) as cause:
        # The interrupt has stopped the workspace, so another one deletes what was requested.
        with stopping_gracefully(lambda: None, terminal.talk):
            clean_up(context.unstopped().workspace(), on_event=emit)
        raise Interrupted(
            "Interrupted. The rehearsal has deleted what it requested.",
            hint="Run the same command again to continue.",
        ) from cause
    show(result, context)
    return result.exit_code
