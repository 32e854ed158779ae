"""Find and remove requests of ours that nothing needs: what a lost or older state has forgotten is still billed."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.approval import approve, distinct
from tpudeploy.cli.boundary import report as tell_error
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.domain.errors import CloudError, NotApproved
from tpudeploy.domain.garbage import Garbage
from tpudeploy.domain.report import Report
from tpudeploy.views import gc as view
from tpudeploy.workspace import Workspace


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.lock_timeout(parser)
    options.backend(parser)
    options.flag(parser, "foreign", "Delete also what no state here tracks.")
    options.flag(parser, "auto-approve", "Skip the approval prompt.")


def run(given: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    profiles = context.load(given.profiles, given)
    workspace = context.workspace(given.profiles, lock_timeout=given.lock_timeout)
    found = workspace.gc(profiles, foreign=given.foreign, on_event=teller(terminal))
    if not given.json:
        terminal.data(view.gc(found, terminal.paint))
    unanswered = _unanswered(found) if found.unreachable else None
    if unanswered is not None:
        terminal.talk("")
        tell_error(terminal, unanswered)
    report, refused = None, None
    if found.going:
        try:
            report = _remove(given, context, workspace, found)
        except NotApproved as error:
            if not given.json:
                raise
            refused = error  # what there is to remove is part of the answer: the document has both
            tell_error(terminal, error)
    worst = refused or (report and report.error) or unanswered
    if given.json:
        context.reply.set(documents.gc(found, report, worst), on_one_line=True)
    return exits.SUCCESS if worst is None else worst.exit_code


def _remove(given: argparse.Namespace, context: Context, workspace: Workspace, found: Garbage) -> Report:
    """Raise `errors.NotApproved`."""
    terminal = context.terminal
    if not given.auto_approve:
        otherwise = "Pass -auto-approve, once you have read the list."
        approve(context, "Do you really want to remove this? There is no undo.", otherwise=otherwise)
    report = workspace.collect(found, on_event=teller(terminal))
    if not given.json:
        terminal.data(view.done(report, terminal.paint))
    for error in distinct(report):
        tell_error(terminal, error)
    return report


def _unanswered(found: Garbage) -> CloudError:
    """Its exit code is that of a command that could not do all it was asked."""
    places = ", ".join(found.unreachable)
    return CloudError(
        f"No answer from {places}: what stands there is not known.", hint="Run `tpudeploy gc` again later."
    )
