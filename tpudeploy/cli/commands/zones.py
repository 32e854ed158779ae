"""List where a slice type is available: hardware, provisioning models, quota, price and recent results."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.option(parser, "type", "The slice type, e.g. v6e-4 (default: the profile's, or v6e-1).", metavar="TYPE")
    options.flag(parser, "refresh", "Read hardware and prices again; they are cached for a day.")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    workspace, terminal = context.workspace(args.profiles), context.terminal
    loaded = context.load_each(args.profiles, args)
    context.report_invalid(loaded)
    tables = workspace.zones(loaded.valid, type=args.type, refresh=args.refresh)
    code = exits.ERROR if loaded.invalid else exits.SUCCESS
    if args.json:
        context.reply.set(documents.zones(tables, emulated=workspace.is_emulated))
        return code
    from tpudeploy.views.zones import zones

    terminal.data(zones(tables, terminal.paint, width=terminal.width, emulated=workspace.is_emulated))
    return code
