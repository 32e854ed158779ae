"""Write a commented profile from a shipped one, to start from."""

from __future__ import annotations

import argparse
from pathlib import Path

from tpudeploy.catalog import closest
from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.commands import schema
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

SCHEMA = "profile.schema.json"
_FIRST = "gemma4-e2b-v6e1"


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(
        parser,
        "from",
        f"The shipped profile to copy (default: {_FIRST}); `list` lists all of them.",
        dest="source",
        default=_FIRST,
    )
    parser.add_argument(
        "path", metavar="FILE", nargs="?", help="The file to write (default: NAME.yaml in this folder)."
    )


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.adapters import assets

    shipped = assets.profiles()
    if given.source == "list":
        if given.json:
            context.reply.set(documents.shipped(shipped))
        else:
            context.terminal.data("\n".join(shipped))
        return exits.SUCCESS
    if given.source not in shipped:
        near = closest(given.source, shipped)
        raise UsageError(
            f"No shipped profile is called `{given.source}`.",
            hint=f"Did you mean `{near}`?" if near else f"There are: {', '.join(shipped)}.",
        )
    path = context.folder / (given.path or f"{given.source}.yaml")
    if not _wrote(path, shipped[given.source]):
        raise UsageError(f"{path} exists.", hint="Name another file; yours is not overwritten.")
    # The profile's first line sends an editor there; a person's own file of that name stays.
    _wrote(path.with_name(SCHEMA), f"{schema.text()}\n")
    if given.json:
        context.reply.set(documents.files([path, path.with_name(SCHEMA)]))
    else:
        context.terminal.data(f"Wrote {path}, and {SCHEMA} beside it for your editor. Next: tpudeploy plan {path}")
    return exits.SUCCESS


def _wrote(path: Path, text: str) -> bool:
    """Whether there was room for it under that name. What can only be written in part is not left behind."""
    try:
        with path.open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink()
                raise
    except FileExistsError:
        return False
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause
    return True
