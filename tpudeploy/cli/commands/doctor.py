"""Check every precondition of a profile, line by line, with what to do. Nothing is created; exit 13 if one fails."""

from __future__ import annotations

import argparse

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.diagnosis import Grade


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    options.flag(parser, "refresh", "Read hardware and prices again; they are cached for a day.")
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([given.profile], given)
    workspace, terminal = context.workspace([given.profile]), context.terminal
    found = workspace.doctor(profile, refresh=given.refresh)
    if given.json:
        context.reply.set(documents.doctor(found, emulated=workspace.is_emulated))
    else:
        from tpudeploy.views.doctor import doctor

        terminal.data(doctor(found, terminal.paint, width=terminal.width, emulated=workspace.is_emulated))
    return exits.REFUSED if found.count(Grade.FAIL) else exits.SUCCESS
