"""What only the command line has of `validate`: reports for other tools, and folders of several projects."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from os.path import dirname
from pathlib import Path

from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.loading import ProfileFile
from tpudeploy.operations.validate import FORMATS, OPERATION, Validation
from tpudeploy.views.reports import REPORTS


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)
    options.option(parser, "format", ", ".join(FORMATS), choices=FORMATS, default="text", metavar="FORMAT")


def run(args: argparse.Namespace, context: Context) -> int:
    if args.json and args.format not in {"text", "json"}:
        raise UsageError(f"-json and -format {args.format} cannot be used together.", hint="Leave one out.")
    result = check_profiles(args.profiles, args, context)
    terminal = context.terminal
    if args.json:
        context.reply.set(result.to_dict())
    elif args.format != "text":
        terminal.verbatim(REPORTS[args.format](result.profiles))
    else:
        for has_diagnostics, group in groupby(result.profiles, key=lambda each: bool(each.diagnostics)):
            if not has_diagnostics:
                terminal.data("\n".join(each.line for each in group))
                continue
            for each in group:
                terminal.explain(describe_diagnostics(each.diagnostics, terminal.paint.styled) + "\n")
                if each.is_valid:
                    terminal.data(each.line)
        if same_names := result.messages(terminal.paint):
            terminal.explain(f"{same_names}\n")
    return result.exit_code


def check_profiles(paths: Sequence[str], args: argparse.Namespace, context: Context) -> Validation:
    """Return the diagnostics of each profile, in the workspace of its folder; `args` holds overlays and settings."""
    results = [
        context.workspace([str(Path(folder) / "profile.yaml")]).validate(
            [ProfileFile(path=path, read=partial(context.read, path, args)) for path in group]
        )
        for folder, group in groupby(paths, key=dirname)
    ]
    return Validation(profiles=tuple(profile for result in results for profile in result.profiles))
