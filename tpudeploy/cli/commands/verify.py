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


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.views.verify import verify

    accuracy.check(args)
    (profile,) = context.load([args.profile], args)
    if args.accuracy is not None:
        return accuracy.run(args, context, profile)
    verification = context.workspace([args.profile]).verify(profile)
    terminal = context.terminal
    if args.json:
        context.reply.set(documents.verify(verification))
    else:
        terminal.data(verify(verification, terminal.paint))
    return exits.SUCCESS if verification.holds else exits.REFUSED
