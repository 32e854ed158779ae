"""Show what changed outside since the last apply, what serves included; exit 2 where anything did. Changes nothing."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options, planning
from tpudeploy.cli.commands import plan
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    planning.arguments(parser)
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    asked: planning.Asked = {**planning.asked(given), "refresh_only": True}
    return plan.tell(given, context, asked, out=None, is_detailed=True)
