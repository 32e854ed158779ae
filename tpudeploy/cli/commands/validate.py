"""Check everything about profiles that can be known offline: format, flags, placement, startup script."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.core.checks import check
from tpudeploy.views.excerpt import diagnostics


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace()
    for profile in context.load(given.profiles, given):
        deployment = workspace.deployment(profile, offline=True)
        said = check([deployment])
        if said:
            context.terminal.talk(diagnostics(said, context.terminal.paint))
        context.terminal.data(f"{deployment.name}: valid")
    return exits.SUCCESS
