"""Ask the endpoint a question; print the answer, and how fast it came."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits, options
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
    first, last = answer.pieces[0][0], answer.pieces[-1][0]
    statistics = {
        "ttft_seconds": round(first, 4),
        "total_seconds": round(last, 4),
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "tokens_per_second": round(answer.completion_tokens / last, 2) if last > 0 else None,
    }
    if given.json:
        context.terminal.data(json.dumps({"answer": answer.text, **statistics}, ensure_ascii=False))
        return exits.SUCCESS
    context.terminal.data(plain(answer.text))
    speed = statistics["tokens_per_second"]
    context.terminal.talk(
        f"TTFT {first:.3f} s, total {last:.3f} s, {answer.prompt_tokens} prompt + {answer.completion_tokens} "
        f"completion tokens{f', {speed} tok/s' if speed else ''}"
    )
    return exits.SUCCESS
