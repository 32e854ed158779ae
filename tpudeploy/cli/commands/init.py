"""Write a commented profile, from a shipped one. At a terminal, it asks for the model, slice, zones and API key."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tpudeploy.adapters import assets
from tpudeploy.adapters.state.disk import Folder
from tpudeploy.catalog import choice_hint
from tpudeploy.cli import documents, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.first_profile import ask_answers, ask_source, name_in, show_size, value_of, with_answers
from tpudeploy.cli.new_profile import with_limits
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.schemas import schema_text
from tpudeploy.operations.written_files import WrittenFiles

SCHEMA = "profile.schema.json"
_FIRST = "gemma4-e2b-v6e1"


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(
        parser,
        "from",
        f"The shipped profile to copy (default: {_FIRST}); `list` lists all of them. With it, nothing is asked.",
        dest="source",
    )
    options.switch(parser, "input", "At a terminal, ask for what --from does not say; `false` asks nothing.")
    parser.add_argument(
        "path", metavar="FILE", nargs="?", help="The file to write (default: NAME.yaml in this folder)."
    )


def run(args: argparse.Namespace, context: Context) -> int:
    shipped = assets.profiles(context.folder)
    if args.source == "list":
        if args.json:
            context.reply.set(documents.shipped_profiles(shipped))
        else:
            context.terminal.data("\n".join(shipped))
        return exits.SUCCESS
    source = args.source or _FIRST
    if source not in shipped:
        hint = choice_hint(source, shipped)
        raise UsageError(f"There is no shipped profile `{source}`.", hint=hint)
    text = shipped[source]
    # Lines that are pasted after a command with --from are commands, and no answers.
    asks = args.input and args.source is None and context.terminal.is_interactive
    if asks:
        _refuse_existing(args.path, context)

        context.terminal.data("Press Enter for the value in brackets.\n")
        source = ask_source(context.terminal, shipped, source)
        text = with_answers(shipped[source], ask_answers(context.terminal, shipped[source]))
        if value_of(text, "id") != value_of(shipped[source], "id"):
            source = name_in(text)  # the file is called as its deployment, not as a profile of another model
    path = context.folder / (args.path or f"{source}.yaml")
    if not write_new(path, with_limits(text), context):
        raise _exists(path)
    # The profile's first line refers editors to the schema; an existing file of that name is kept.
    write_new(path.with_name(SCHEMA), f"{schema_text()}\n", context)
    if args.json:
        context.reply.set(WrittenFiles(files=(path, path.with_name(SCHEMA))).to_dict())
    elif asks:
        context.terminal.data(f"\nWrote {os.path.relpath(path)}, and {SCHEMA} beside it for your editor.\n")
        show_size(path, context)
    else:
        context.terminal.data(f"Wrote {path}, and {SCHEMA} beside it for your editor. Next: tpudeploy plan {path}")
    return exits.SUCCESS


def _refuse_existing(name: str | None, context: Context) -> None:
    """Raise `errors.UsageError` before anything is asked, if the file that is named exists."""
    if name is not None and (context.folder / name).exists():
        raise _exists(context.folder / name)


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists.", hint="Name another file; yours is not overwritten.")


def write_new(path: Path, text: str, context: Context) -> bool:
    """Write a new file, and return False if the file exists. Raise `errors.UsageError` where it cannot be written."""
    try:
        return Folder.for_file(path, here=context.folder).create(path.name, text)
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror}.") from cause
