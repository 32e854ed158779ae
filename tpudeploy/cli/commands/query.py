"""What only the command line has of `query`: a prompt from a file or from stdin."""

from __future__ import annotations

import argparse

from tpudeploy.cli import operation_command, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.prompts import read_prompt
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.query import OPERATION as OPERATION  # noqa: PLC0414 - the command has its help


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="A profile.")
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help=OPERATION.argument("prompt").arg.help)
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="Read the prompt from a file, `-` for stdin; it follows PROMPT."
    )
    options.overlays(parser, "--overlay")
    operation_command.add_options(parser, OPERATION)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.prompt is None and args.file is None:
        raise UsageError("There is no question.", hint="tpudeploy query PROFILE 'Your question', or -f FILE.")
    if args.file is not None:
        args.prompt = "\n\n".join(filter(None, (args.prompt, read_prompt(args.file, context))))
    return operation_command.run(OPERATION, args, context)
