"""Check everything about profiles that can be known offline: format, flags, placement, startup script."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.core.checks import check
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.views.excerpt import diagnostics

if TYPE_CHECKING:
    from tpudeploy.views.reports import Checked
    from tpudeploy.workspace import Workspace

_FORMATS = ("text", "json", "github", "sarif", "junit")


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.option(parser, "format", f"{', '.join(_FORMATS)}", choices=_FORMATS, default="text", metavar="FORMAT")


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.views.reports import REPORTS

    if given.json and given.format not in {"text", "json"}:
        raise UsageError(f"-json and -format {given.format} are two forms of output.", hint="Leave one out.")
    found = checked(given.profiles, given, context)
    if given.json:
        context.reply.set_text(REPORTS["json"](found))
    elif given.format != "text":
        context.terminal.data(REPORTS[given.format](found))
    for row in found if given.format == "text" and not given.json else ():
        if row.found:
            context.terminal.talk(diagnostics(row.found, context.terminal.paint) + "\n")
        if row.is_valid:
            context.terminal.data(f"{row.file}: valid")
    return exits.SUCCESS if all(row.is_valid for row in found) else exits.ERROR


def checked(paths: Sequence[str], given: argparse.Namespace, context: Context) -> list[Checked]:
    """Each of these profiles, with what is to be said of it; overlays and settings are in `given`."""
    from tpudeploy.views.reports import Checked

    project = cache(lambda folder: context.workspace([str(folder / "profile.yaml")]))
    return [Checked(file=path, found=tuple(_found(path, given, context, project))) for path in paths]


def _found(
    path: str, given: argparse.Namespace, context: Context, project: Callable[[Path], Workspace]
) -> list[Diagnostic]:
    """`project` is that of the profiles in a folder."""
    try:
        profile, workspace = context.read(path, given), project(Path(path).parent)
        deployment = workspace.deployment(profile, offline=True, script=False)
        warnings = workspace.warnings(profile)
    except ConfigError as error:
        whole = Diagnostic(code=error.code, message=error.message, hint=error.hint)
        return list(error.diagnostics) or [whole]
    return [*warnings, *check([deployment])]
