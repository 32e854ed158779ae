"""Show the current metrics of running servers: each figure, what it means, and what to do."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.metrics import Metrics


def arguments(parser: argparse.ArgumentParser) -> None:
    told = "A profile (all its servers), or the name of a deployment (its endpoint); default: all published endpoints."
    parser.add_argument("of", metavar="PROFILE | NAME", nargs="?", help=told)
    options.overlays(parser)
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    found = _found(given, context)
    terminal = context.terminal
    if given.json:
        context.reply.set(documents.metrics(found))
        return exits.SUCCESS
    from tpudeploy.views.metrics import metrics

    terminal.data(metrics(found, terminal.paint, width=terminal.width))
    return exits.SUCCESS


def _found(given: argparse.Namespace, context: Context) -> Metrics:
    if given.of is None:
        return context.workspace().metrics_of_published()
    if context.is_profile(given.of):
        (profile,) = context.load([given.of], given)
        return context.workspace([given.of]).metrics(profile)
    return context.workspace().metrics_of_published([given.of])
