"""Ask the endpoint a question; print the answer as it streams, and its speed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.views.words import plain

if TYPE_CHECKING:
    from tpudeploy.adapters.vllm_client import Completion


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    parser.add_argument("prompt", metavar="PROMPT", help="The question.")
    options.option(
        parser, "max-tokens", "The largest number of tokens in the answer (default 256).", type=int, default=256
    )
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([args.profile], args)
    workspace, terminal = context.workspace([args.profile]), context.terminal
    if args.json:
        answer = workspace.ask(profile, args.prompt, max_tokens=args.max_tokens)
        context.reply.set(documents.answer(answer))
        return exits.SUCCESS
    pieces: list[str] = []

    def print_piece(piece: str) -> None:
        pieces.append(piece)
        terminal.data(plain(piece), end="")

    try:
        answer = workspace.ask(profile, args.prompt, max_tokens=args.max_tokens, on_piece=print_piece)
    finally:
        if pieces:
            terminal.data("")
    terminal.talk(_summary(answer))
    return exits.SUCCESS


def _summary(completion: Completion) -> str:
    rate, later_rate = documents.rate(completion.tokens_per_second), documents.rate(completion.tokens_per_second_then)
    later_text = f" ({later_rate} after the first)" if later_rate else ""
    counts = [completion.prompt_tokens, completion.completion_tokens]
    prompt, answer = ("unknown" if count is None else count for count in counts)
    return (
        f"TTFT {completion.seconds_to_first:.3f} s, total {completion.seconds:.3f} s, {prompt} prompt + "
        f"{answer} completion tokens{f', {rate} tok/s{later_text}' if rate else ''}"
    )
