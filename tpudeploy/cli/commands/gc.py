"""Find and remove requests of ours that nothing needs: what a lost or older state has forgotten is still billed."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options
from tpudeploy.cli.approval import approve, distinct
from tpudeploy.cli.boundary import report as tell_error
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.domain.errors import CloudError
from tpudeploy.domain.garbage import Garbage
from tpudeploy.views import gc as view
from tpudeploy.views import jsonl
from tpudeploy.workspace import Workspace


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.lock_timeout(parser)
    options.backend(parser)
    options.flag(parser, "foreign", "remove also what no state here speaks of")
    options.flag(parser, "auto-approve", "do not ask")
    options.events(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    profiles = context.load(given.profiles, given)
    workspace = context.workspace(given.profiles, lock_timeout=given.lock_timeout)
    found = workspace.gc(profiles, foreign=given.foreign, on_event=teller(terminal, as_json=given.json))
    terminal.data(jsonl.result(found) if given.json else view.gc(found, terminal.paint))
    if found.unreachable:
        terminal.talk("")
        tell_error(terminal, _unanswered(found))
    code = _remove(given, context, workspace, found) if found.going else exits.SUCCESS
    return code or (exits.ERROR if found.unreachable else exits.SUCCESS)


def _remove(given: argparse.Namespace, context: Context, workspace: Workspace, found: Garbage) -> int:
    terminal = context.terminal
    if not given.auto_approve:
        otherwise = "Pass -auto-approve, once you have read the list."
        approve(context, "Do you really want to remove this? There is no undo.", otherwise=otherwise)
    report = workspace.collect(found, on_event=teller(terminal, as_json=given.json))
    if given.json:
        terminal.data(jsonl.result(report))
    else:
        terminal.data(view.done(report, terminal.paint))
    for error in distinct(report):
        tell_error(terminal, error)
    return exits.SUCCESS if report.error is None else report.error.exit_code


def _unanswered(found: Garbage) -> CloudError:
    """Its exit code is that of a command that could not do all it was asked."""
    places = ", ".join(found.unreachable)
    return CloudError(
        f"No answer from {places}: what stands there is not known.", hint="Run `tpudeploy gc` again later."
    )
