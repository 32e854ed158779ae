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


def run(args: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([args.profile], args)
    workspace, terminal = context.workspace([args.profile]), context.terminal
    diagnosis = workspace.doctor(profile, refresh=args.refresh)
    if args.json:
        context.reply.set(documents.doctor(diagnosis, emulated=workspace.is_emulated))
    else:
        from tpudeploy.views.doctor import doctor

        terminal.data(doctor(diagnosis, terminal.paint, width=terminal.width, emulated=workspace.is_emulated))
    return exits.REFUSED if diagnosis.count(Grade.FAIL) else exits.SUCCESS
