"""With --from-command, --from-file or --model, the profile is made from what you have; the end says what is missing.

--from-command 'docker run …' or 'vllm serve …' reads a command line, --from-file a compose file, a Kubernetes manifest,
a SkyPilot or dstack task, or a startup script. --model ID picks the smallest slice that fits. Secrets become names.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from tpudeploy.cli import options
from tpudeploy.cli.commands.init import write_new
from tpudeploy.cli.context import Context
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.intake.operation import DraftedProfile
from tpudeploy.operations.schemas import schema_text

_SCHEMA = "profile.schema.json"


def arguments(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "model", "Make a profile for this Hugging Face id.", metavar="ID", default="")
    options.option(parser, "from-command", "Make it from a docker or vllm command line.", metavar="COMMAND", default="")
    options.option(
        parser,
        "from-file",
        "Make it from a compose file, manifest, SkyPilot or dstack task, or script.",
        metavar="FILE",
    )
    options.option(
        parser, "type", "With these, the slice type to use.", metavar="TYPE", default="", variable="init-type"
    )


def run(args: argparse.Namespace, context: Context) -> int | None:
    if not args.model and not args.from_command and args.from_file is None:
        if args.type:
            raise UsageError("--type needs --model, --from-command or --from-file.", hint="Add one of them.")
        return None
    if args.source is not None:
        raise UsageError("--from copies a shipped profile.", hint="Name one source: leave --from out.")
    drafted = context.workspace().draft_profile(
        command=args.from_command,
        file=None if args.from_file is None else context.folder / args.from_file,
        model=args.model,
        type=args.type,
    )
    path = write(drafted, args.path, context)
    if args.json:
        context.reply.set(replace(drafted, file=str(path)).to_dict())
        return exits.SUCCESS
    path_text = os.path.relpath(path)
    context.terminal.data(
        f"Wrote {path_text}: {drafted.messages(context.terminal.paint)}\nNext: tpudeploy plan {path_text}"
    )
    return exits.SUCCESS


def write(drafted: DraftedProfile, name: str | None, context: Context) -> Path:
    """Write a profile, and its schema beside it. Raise `errors.UsageError` for a file that exists."""
    path = context.folder / (name or f"{drafted.name}.yaml")
    if not write_new(path, drafted.profile, context):
        raise UsageError(f"{path} exists.", hint="Name another file; yours is not overwritten.")
    write_new(path.with_name(_SCHEMA), f"{schema_text()}\n", context)
    return path
