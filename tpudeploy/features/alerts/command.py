"""What only the command line has of `alerts`: the file that is written."""

from __future__ import annotations

import argparse
from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, prepare
from tpudeploy.domain import exits
from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.features.alerts.operation import OPERATION


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.option(parser, "out", "Write to FILE instead of stdout.", metavar="FILE", type=Path)


def run(args: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    call = prepare(OPERATION, args, context)
    result = call.opened.alerts(**call.values)
    if result.origin:
        terminal.explain(result.origin)
    if args.out is not None:
        _write(context.folder / args.out, result.text, here=context.folder)
        terminal.talk(f"Wrote {args.out}.")
    if args.json:
        context.reply.set(result.to_dict())
    elif args.out is None:
        terminal.verbatim(result.as_text(terminal.paint))
    for line in result.remarks:
        terminal.explain(line)
    return exits.SUCCESS


def _write(path: Path, text: str, *, here: Path) -> None:
    """Write a file completely or not at all. Raise `errors.UsageError`."""
    try:
        disk.replace(path, text, here=here)
    except StateError as cause:
        raise UsageError(cause.message, hint="Name another file.") from cause
