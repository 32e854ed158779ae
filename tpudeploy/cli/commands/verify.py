"""What the profile declares against what the engine does; exit code 13 where a declared setting is not in effect."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.views.verify import verify

    (profile,) = context.load([given.profile], given)
    found = context.workspace([given.profile]).verify(profile)
    terminal = context.terminal
    if given.json:
        terminal.data(documents.text(documents.verify(found)))
    else:
        terminal.data(verify(found, terminal.paint))
    return exits.SUCCESS if found.holds else exits.REFUSED
