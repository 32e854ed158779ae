"""Serve a model from its id alone: write a profile, show its size, the plan and the price, ask, and apply.

The profile has the facts of the model's family, the smallest slice that fits, a limit for its search, and an end
24 hours after it first serves. A second `up` resumes the first one. For anything else, change the
file and run `tpudeploy apply`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tpudeploy.adapters.files import read_file
from tpudeploy.cli import options
from tpudeploy.cli.commands import apply
from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.cli.operation_command import add_approval, add_argument
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.intake.command import write
from tpudeploy.features.intake.operation import DraftedProfile
from tpudeploy.operations.apply import OPERATION as APPLY

_ASKED = ("wait", "timeout", "max_cost")  # the options of `apply` for a deployment that is new


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL_ID", help="A Hugging Face id, such as google/gemma-4-E2B-it.")
    options.option(parser, "type", "The slice type, instead of the smallest that fits.", metavar="TYPE", default="")
    parser.add_argument("-o", "--output", metavar="FILE", help="The profile to write (default: NAME.yaml).")
    for argument in APPLY.arguments:
        if argument.name in _ASKED:
            add_argument(parser, argument)
        elif not argument.is_positional:
            parser.set_defaults(**{argument.name: argument.default})
    for name in APPLY.options:
        getattr(options, name)(parser)
    add_approval(parser, APPLY)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.model.endswith((".yaml", ".yml")):
        hint = "`tpudeploy apply PROFILE` creates or updates a deployment, and waits until it serves."
        raise UsageError(f"`up` takes a model id, and `{args.model}` is a file.", hint=hint)
    drafted = context.workspace().draft_profile(model=args.model, type=args.type)
    path = _profile_file(drafted, args.output, context)
    if not args.json:
        context.terminal.data(f"{args.model} on {drafted.accelerator_type}, in {os.path.relpath(path)}.\n")
        (profile,) = context.load([str(path)], AS_WRITTEN)
        size = context.workspace([str(path)]).size(profile)
        context.terminal.data(f"{size.as_text(context.terminal.paint, context.terminal.width)}\n")
    args.profiles, args.overlays, args.sets = [str(path)], [], []
    return apply.run(args, context)


def _profile_file(drafted: DraftedProfile, name: str | None, context: Context) -> Path:
    """Return the file with the profile: a new one, or that of an earlier `up`, as long as it is unchanged."""
    path = context.folder / (name or f"{drafted.name}.yaml")
    if not path.exists():
        return write(drafted, name, context)
    try:
        is_same = read_file(path, MAX_BYTES) == drafted.profile.encode()
    except OSError:
        is_same = False  # a folder, or a file of something else
    if not is_same:
        where = os.path.relpath(path)
        hint = f"Apply it: `tpudeploy apply {where}`. Or name another file: -o FILE."
        raise UsageError(f"{path} exists, and is another profile.", hint=hint)
    return path
