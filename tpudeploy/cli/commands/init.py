"""Write a commented profile from a shipped one, to start from."""

from __future__ import annotations

import argparse

from tpudeploy.catalog import closest
from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

_FIRST = "gemma4-e2b-v6e1"


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(
        parser, "from", f"a shipped profile (default {_FIRST}; `list` names them all)", dest="source", default=_FIRST
    )
    parser.add_argument("path", metavar="FILE", nargs="?", help="where to write it (default: NAME.yaml here)")


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.adapters import assets

    shipped = assets.profiles()
    if given.source == "list":
        context.terminal.data("\n".join(shipped))
        return exits.SUCCESS
    if given.source not in shipped:
        near = closest(given.source, shipped)
        raise UsageError(
            f"No shipped profile is called `{given.source}`.",
            hint=f"Did you mean `{near}`?" if near else f"There are: {', '.join(shipped)}.",
        )
    path = context.folder / (given.path or f"{given.source}.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(shipped[given.source])
    except FileExistsError as cause:
        raise UsageError(f"{path} exists.", hint="Name another file; yours is not overwritten.") from cause
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause
    context.terminal.data(f"Wrote {path}. Next: tpudeploy plan {path}")
    return exits.SUCCESS
