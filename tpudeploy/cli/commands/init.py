"""Write a commented profile from a shipped one, to start from."""

from __future__ import annotations

import argparse
from pathlib import Path

from tpudeploy.catalog import closest
from tpudeploy.cli import documents, exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.bench import WrittenFiles
from tpudeploy.operations.schemas import schema_text

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


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.adapters import assets

    shipped = assets.profiles()
    if args.source == "list":
        if args.json:
            context.reply.set(documents.shipped_profiles(shipped))
        else:
            context.terminal.data("\n".join(shipped))
        return exits.SUCCESS
    if args.source not in shipped:
        near = closest(args.source, shipped)
        raise UsageError(
            f"There is no shipped profile `{args.source}`.",
            hint=f"Did you mean `{near}`?" if near else f"There are: {', '.join(shipped)}.",
        )
    path = context.folder / (args.path or f"{args.source}.yaml")
    if not _write(path, shipped[args.source]):
        raise UsageError(f"{path} exists.", hint="Name another file; yours is not overwritten.")
    # The profile's first line refers editors to the schema; an existing file of that name is kept.
    _write(path.with_name(SCHEMA), f"{schema_text()}\n")
    if args.json:
        context.reply.set(WrittenFiles(files=(path, path.with_name(SCHEMA))).to_dict())
    else:
        context.terminal.data(f"Wrote {path}, and {SCHEMA} beside it for your editor. Next: tpudeploy plan {path}")
    return exits.SUCCESS


def _write(path: Path, text: str) -> bool:
    """Write a new file, and return False if the file exists. A file that cannot be written completely is removed."""
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
