"""Show what changed or vanished since the last apply; exit 2 where anything did. Changes nothing."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options, planning
from tpudeploy.cli.context import Context
from tpudeploy.cli.plan_text import tell
from tpudeploy.cli.progress import event_printer


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    planning.arguments(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    asked: planning.PlanArguments = {**planning.plan_arguments(given), "refresh_only": True}
    loaded, workspace = context.load_each(given.profiles, given), context.workspace(given.profiles)
    tell_event = event_printer(context.terminal)
    plan = workspace.plan(loaded.valid, **asked, attest=True, invalid=loaded.invalid, on_event=tell_event)
    tell(plan, context)
    if plan.worst_error is not None:
        return plan.worst_error.exit_code
    return exits.SUCCESS if plan.is_empty else exits.CHANGES
