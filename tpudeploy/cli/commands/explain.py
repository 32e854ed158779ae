"""What an error code or a refusal means, and what to do about it."""

from __future__ import annotations

import argparse

from tpudeploy.catalog import closest
from tpudeploy.cli import exits
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", help="e.g. TPU1201, or a refusal such as `stockout`")


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.cli.explanations import explanations

    known = explanations()
    wanted = given.code if given.code in known else given.code.upper()
    if wanted not in known:
        near = closest(given.code, known)
        raise UsageError(f"No code `{given.code}`.", hint=f"Did you mean `{near}`?" if near else "")
    context.terminal.data(f"{context.terminal.paint.bold(wanted)}  {known[wanted]}")
    return exits.SUCCESS
