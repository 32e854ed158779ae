"""Check profiles offline: format, flags, placement, startup script."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.sizing.checks import check
from tpudeploy.views.excerpt import diagnostics

if TYPE_CHECKING:
    from tpudeploy.views.reports import CheckedProfile
    from tpudeploy.workspace import Workspace

_FORMATS = ("text", "json", "github", "sarif", "junit")


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.option(parser, "format", f"{', '.join(_FORMATS)}", choices=_FORMATS, default="text", metavar="FORMAT")


def run(args: argparse.Namespace, context: Context) -> int:
    from tpudeploy.views.reports import REPORTS

    if args.json and args.format not in {"text", "json"}:
        raise UsageError(f"-json and -format {args.format} are two forms of output.", hint="Leave one out.")
    results = check_profiles(args.profiles, args, context)
    if args.json:
        context.reply.set_text(REPORTS["json"](results))
    elif args.format != "text":
        context.terminal.data(REPORTS[args.format](results))
    for result in results if args.format == "text" and not args.json else ():
        if result.diagnostics:
            context.terminal.talk(diagnostics(result.diagnostics, context.terminal.paint) + "\n")
        if result.is_valid:
            context.terminal.data(f"{result.file}: valid")
    return exits.SUCCESS if all(result.is_valid for result in results) else exits.ERROR


def check_profiles(paths: Sequence[str], args: argparse.Namespace, context: Context) -> list[CheckedProfile]:
    """Return the diagnostics of each profile; `args` holds overlays and settings."""
    from tpudeploy.views.reports import CheckedProfile

    project = cache(lambda folder: context.workspace([str(folder / "profile.yaml")]))
    return [CheckedProfile(file=path, diagnostics=tuple(_diagnostics(path, args, context, project))) for path in paths]


def _diagnostics(
    path: str, args: argparse.Namespace, context: Context, project: Callable[[Path], Workspace]
) -> list[Diagnostic]:
    """Return the diagnostics of a profile. `project` returns the workspace of the profiles in a folder."""
    try:
        profile, workspace = context.read(path, args), project(Path(path).parent)
        deployment = workspace.deployment(profile, offline=True, script=False)
        warnings = workspace.warnings(profile)
    except ConfigError as error:
        diagnostic = Diagnostic(code=error.code, message=error.message, hint=error.hint)
        return list(error.diagnostics) or [diagnostic]
    return [*warnings, *check([deployment])]
