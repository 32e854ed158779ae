"""Ask the endpoint a question; print the answer as it comes, and how fast it came."""

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


def run(given: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([given.profile], given)
    workspace, terminal = context.workspace([given.profile]), context.terminal
    if given.json:
        answer = workspace.ask(profile, given.prompt, max_tokens=given.max_tokens)
        context.reply.set(documents.answer(answer))
        return exits.SUCCESS
    heard: list[str] = []

    def hear(piece: str) -> None:
        heard.append(piece)
        terminal.data(plain(piece), end="")

    try:
        answer = workspace.ask(profile, given.prompt, max_tokens=given.max_tokens, on_piece=hear)
    finally:
        if heard:
            terminal.data("")
    terminal.talk(_in_words(answer))
    return exits.SUCCESS


def _in_words(of: Completion) -> str:
    whole, then = documents.rate(of.tokens_per_second), documents.rate(of.tokens_per_second_then)
    after = f" ({then} after the first)" if then else ""
    return (
        f"TTFT {of.seconds_to_first:.3f} s, total {of.seconds:.3f} s, {of.prompt_tokens} prompt + "
        f"{of.completion_tokens} completion tokens{f', {whole} tok/s{after}' if whole else ''}"
    )
