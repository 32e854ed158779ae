"""What only the command line has of `gc`: the removal, after approval, of what was found."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents
from tpudeploy.cli.approval import all_errors, approve
from tpudeploy.cli.context import Context
from tpudeploy.cli.error_report import report_error
from tpudeploy.cli.operation_command import add_arguments, prepare
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain import exits
from tpudeploy.domain.errors import CloudError, NotApproved
from tpudeploy.domain.orphans import Orphans
from tpudeploy.operations.gc import OPERATION
from tpudeploy.orphans import view
from tpudeploy.plans import Report
from tpudeploy.workspace import Workspace


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    call = prepare(OPERATION, args, context)
    workspace = call.opened
    garbage = workspace.gc(**call.values, on_event=event_printer(terminal))
    if not args.json:
        terminal.data(view.gc(garbage, terminal.paint))
    unanswered = _unanswered(garbage) if garbage.unreachable else None
    if unanswered is not None:
        terminal.talk("")
        report_error(terminal, unanswered)
    report, refusal = None, None
    if garbage.going:
        try:
            report = _remove(args, context, workspace, garbage)
        except NotApproved as error:
            if not args.json:
                raise
            refusal = error  # the document holds both the orphans and this error
            report_error(terminal, error)
    else:
        workspace.collect(garbage, on_event=event_printer(terminal))  # closes in the ledger what is gone
    worst = refusal or (report and report.error) or unanswered
    if args.json:
        context.reply.set(documents.gc(garbage, report, worst), on_one_line=True)
    return exits.SUCCESS if worst is None else worst.exit_code


def _remove(args: argparse.Namespace, context: Context, workspace: Workspace, garbage: Orphans) -> Report:
    """Remove the orphans after approval. Raise `errors.NotApproved` without it."""
    terminal = context.terminal
    approve(args, context, OPERATION)
    report = workspace.collect(garbage, on_event=event_printer(terminal))
    if not args.json:
        terminal.data(view.summary_line(report, terminal.paint))
    for error in all_errors(report):
        report_error(terminal, error)
    return report


def _unanswered(garbage: Orphans) -> CloudError:
    """Return the error for places that did not answer; the command exits with its code."""
    places = ", ".join(garbage.unreachable)
    return CloudError(
        f"No answer from {places}: the resources there are unknown.", hint="Run `tpudeploy gc` again later."
    )
