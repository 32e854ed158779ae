"""Compare what the profile declares with what its servers do; exit with 13 if a declared setting is not in effect.

With --accuracy, ask questions with known answers instead; exit with 13 if quality fell.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import accuracy, documents, exits, options
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    accuracy.arguments(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.views.verify import verify

    accuracy.check(given)
    (profile,) = context.load([given.profile], given)
    if given.accuracy is not None:
        return accuracy.run(given, context, profile)
    found = context.workspace([given.profile]).verify(profile)
    terminal = context.terminal
    if given.json:
        context.reply.set(documents.verify(found))
    else:
        terminal.data(verify(found, terminal.paint))
    return exits.SUCCESS if found.holds else exits.REFUSED
