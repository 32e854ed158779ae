"""Explain an error code or a refusal, and what to do about it. Without an argument, list all codes."""

from __future__ import annotations

import argparse

from tpudeploy.catalog import closest
from tpudeploy.cli import documents, exits
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    help_ = "A code such as TPU1201, a refusal such as `stockout`, or an error text of Google Cloud in quotes."
    parser.add_argument("code", metavar="CODE", nargs="?", help=help_)


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.cli.explanations import explanations

    if args.code is None:
        _list(args, context)
        return exits.SUCCESS
    code, text = lookup(args.code.strip(), explanations())
    if args.json:
        context.reply.set(documents.explanation(code, text))
    else:
        context.terminal.data(f"{context.terminal.paint.bold(code)}  {text}")
    return exits.SUCCESS


def lookup(query: str, pages: dict[str, str]) -> tuple[str, str]:
    """Return a code and its page. Raise UsageError if the query is neither a code nor a text of several words."""
    from tpudeploy.cli.explanations import explain_text

    for code in (query, query.upper(), query.lower()):
        if code in pages:
            return code, pages[code]
    if len(query.split()) > 1:
        return explain_text(query)
    near = closest(query, pages)
    raise UsageError(
        f"No code `{query}`.", hint=f"Did you mean `{near}`?" if near else "Run `tpudeploy explain` for all of them."
    )


def _list(args: argparse.Namespace, context: Context) -> None:
    from tpudeploy.cli.explanations import groups

    if args.json:
        context.reply.set(documents.explanations(groups()))
        return
    blocks = []
    for name, texts in groups().items():
        width = max(map(len, texts))
        lines = (f"  {code.ljust(width)}  {text.splitlines()[0]}" for code, text in texts.items())
        blocks.append("\n".join((context.terminal.paint.bold(name), *lines)))
    context.terminal.data("\n\n".join(blocks))
