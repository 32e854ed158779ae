"""Ask the endpoint a question; print the answer, and how fast it came."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.views.words import plain


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser)
    parser.add_argument("prompt", metavar="PROMPT", help="the question")
    options.option(parser, "max-tokens", "at most so many tokens (default 256)", type=int, default=256)
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    (profile,) = context.load([given.profile], given)
    answer = context.workspace([given.profile]).ask(profile, given.prompt, max_tokens=given.max_tokens)
    told = documents.answer(answer)
    if given.json:
        context.terminal.data(json.dumps(told, ensure_ascii=False))
        return exits.SUCCESS
    context.terminal.data(plain(answer.text))
    speed, first, last = told["tokens_per_second"], answer.pieces[0][0], answer.pieces[-1][0]
    context.terminal.talk(
        f"TTFT {first:.3f} s, total {last:.3f} s, {answer.prompt_tokens} prompt + {answer.completion_tokens} "
        f"completion tokens{f', {speed} tok/s' if speed else ''}"
    )
    return exits.SUCCESS
