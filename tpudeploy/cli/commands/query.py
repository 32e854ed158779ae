"""Ask the endpoint a question; print the answer as it streams, and its speed."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments, prepare
from tpudeploy.operations.query import OPERATION
from tpudeploy.text.words import plain


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    call, terminal = prepare(OPERATION, args, context), context.terminal
    if args.json:
        context.reply.set(call.opened.query(**call.values).to_dict())
        return exits.SUCCESS
    has_output = False

    def print_piece(piece: str) -> None:
        nonlocal has_output
        has_output = True
        terminal.verbatim(plain(piece), end="")

    try:
        answer = call.opened.query(**call.values, on_piece=print_piece)
    finally:
        if has_output:
            terminal.verbatim("")
    if not has_output:
        terminal.verbatim(plain(answer.answer))
    terminal.explain(answer.messages(terminal.paint))
    return exits.SUCCESS
