"""Explain an error code or a refusal, and what to do about it. Without an argument, list all codes."""

from __future__ import annotations

import argparse

from tpudeploy.catalog import closest
from tpudeploy.cli import documents, exits
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    told = "A code such as TPU1201, a refusal such as `stockout`, or an error text of Google Cloud in quotes."
    parser.add_argument("code", metavar="CODE", nargs="?", help=told)


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.cli.explanations import explanations

    if given.code is None:
        _list(given, context)
        return exits.SUCCESS
    wanted, text = explained(given.code.strip(), explanations())
    if given.json:
        context.reply.set(documents.explanation(wanted, text))
    else:
        context.terminal.data(f"{context.terminal.paint.bold(wanted)}  {text}")
    return exits.SUCCESS


def explained(written: str, known: dict[str, str]) -> tuple[str, str]:
    """A code with its text. Raise UsageError where it is neither a code nor words of Google's."""
    from tpudeploy.cli.explanations import of_text

    for code in (written, written.upper(), written.lower()):
        if code in known:
            return code, known[code]
    if len(written.split()) > 1:
        return of_text(written)
    near = closest(written, known)
    raise UsageError(
        f"No code `{written}`.", hint=f"Did you mean `{near}`?" if near else "Run `tpudeploy explain` for all of them."
    )


def _list(given: argparse.Namespace, context: Context) -> None:
    from tpudeploy.cli.explanations import groups

    if given.json:
        context.reply.set(documents.explanations(groups()))
        return
    blocks = []
    for name, texts in groups().items():
        width = max(map(len, texts))
        lines = (f"  {code.ljust(width)}  {text.splitlines()[0]}" for code, text in texts.items())
        blocks.append("\n".join((context.terminal.paint.bold(name), *lines)))
    context.terminal.data("\n\n".join(blocks))
