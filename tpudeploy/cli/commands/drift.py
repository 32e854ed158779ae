"""Show what changed or vanished since the last apply; exit 2 where anything did. Changes nothing."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options, planning
from tpudeploy.cli.context import Context
from tpudeploy.cli.plan_text import tell
from tpudeploy.cli.progress import teller


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    planning.arguments(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    asked: planning.Asked = {**planning.asked(given), "refresh_only": True}
    profiles = context.load(given.profiles, given)
    plan = context.workspace(given.profiles).plan(profiles, **asked, attest=True, on_event=teller(context.terminal))
    tell(plan, context)
    return exits.SUCCESS if plan.is_empty else exits.CHANGES
