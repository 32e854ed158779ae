"""Where a slice type can be had: hardware, provisioning models, quota, price and recent luck, pair by pair."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.option(parser, "type", "The slice type, e.g. v6e-4 (default: the profile's, or v6e-1).", metavar="TYPE")
    options.flag(parser, "refresh", "Read hardware and prices again; they are cached for a day.")
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    workspace, terminal = context.workspace(given.profiles), context.terminal
    loaded = context.load_each(given.profiles, given)
    context.report_invalid(loaded)
    found = workspace.zones(loaded.valid, type=given.type, refresh=given.refresh)
    code = exits.ERROR if loaded.invalid else exits.SUCCESS
    if given.json:
        context.reply.set(documents.zones(found, emulated=workspace.is_emulated))
        return code
    from tpudeploy.views.zones import zones

    terminal.data(zones(found, terminal.paint, width=terminal.width, emulated=workspace.is_emulated))
    return code
