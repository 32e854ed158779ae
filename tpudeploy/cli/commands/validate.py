"""Check everything about profiles that can be known offline: format, flags, placement, startup script."""

from __future__ import annotations

import argparse

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.core.checks import check
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError
from tpudeploy.views.excerpt import diagnostics

_FORMATS = ("text", "json", "github", "sarif", "junit")


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.option(parser, "format", f"{', '.join(_FORMATS)}", choices=_FORMATS, default="text", metavar="FORMAT")


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.views.reports import REPORTS, Checked

    checked = [Checked(file=path, found=tuple(_found(path, given, context))) for path in given.profiles]
    if given.format != "text":
        context.terminal.data(REPORTS[given.format](checked))
    for row in checked if given.format == "text" else ():
        if row.found:
            context.terminal.talk(diagnostics(row.found, context.terminal.paint) + "\n")
        if row.is_valid:
            context.terminal.data(f"{row.file}: valid")
    return exits.SUCCESS if all(row.is_valid for row in checked) else exits.ERROR


def _found(path: str, given: argparse.Namespace, context: Context) -> list[Diagnostic]:
    try:
        profile = context.read(path, given)
        deployment = context.workspace([path]).deployment(profile, offline=True, script=False)
    except ConfigError as error:
        whole = Diagnostic(code=error.code, message=error.message, hint=error.hint)
        return list(error.diagnostics) or [whole]
    return [*profile.warnings, *check([deployment])]
