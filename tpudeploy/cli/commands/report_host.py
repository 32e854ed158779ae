"""Report the machine of a slice to Google as faulty, or else delete the slice, and hold its place back."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options
from tpudeploy.cli.approval import approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, prepare, show
from tpudeploy.operations.report_host import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.flag(parser, "auto-approve", "Skip the approval prompt.")


def run(args: argparse.Namespace, context: Context) -> int:
    call = prepare(OPERATION, args, context)
    proposal = call.opened.report_host(**{**call.values, "dry_run": True})
    if args.dry_run:
        show(proposal, context)
        return exits.SUCCESS
    if not args.json:
        context.terminal.data(str(proposal))
    if not args.auto_approve:
        question = "Do you really want to report this host? There is no undo."
        approve(context, question, otherwise="Review the report, then pass -auto-approve.")
    # The log was read once: what was shown is what Google is told.
    show(call.opened.report_host(**{**call.values, "description": proposal.description}), context)
    return exits.SUCCESS
