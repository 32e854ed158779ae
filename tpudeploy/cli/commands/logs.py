"""A boot's log; --explain names the first real cause in it, with what to do, or the phases of the start."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from tpudeploy.domain.budget import HbmBudget


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="the profile of the server: remedies are for it")
    options.overlays(parser, "-f", "--overlay")
    options.option(parser, "file", "read this log instead, `-` for stdin", metavar="LOG")
    options.flag(parser, "explain", "the cause and what to do, or how long each phase took")
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.adapters.logfile import read_log

    if given.file is None:
        raise UsageError("No log to read.", hint="Name one: `tpudeploy logs --file boot.log --explain PROFILE`.")
    text = read_log(given.file if given.file == "-" else str(context.folder / given.file))
    terminal = context.terminal
    if not given.explain and not given.json:
        terminal.data(text.rstrip("\n"))
        return exits.SUCCESS

    from tpudeploy.core.bootlog import read
    from tpudeploy.views.logs import explained

    reading = read(text, budget=_budget(given, context))
    if given.json:
        terminal.data(json.dumps({"format": "tpudeploy.logs/1", **reading.to_dict()}, indent=2, ensure_ascii=False))
    else:
        terminal.data(explained(reading, terminal.paint, width=terminal.width))
    return exits.SUCCESS


def _budget(given: argparse.Namespace, context: Context) -> HbmBudget | None:
    """What the profile predicts, where there is a profile that can be sized."""
    if given.profile is None:
        return None
    from tpudeploy.domain.budget import HbmBudget
    from tpudeploy.loading import size

    (profile,) = context.load([given.profile], given)
    found = size(profile)
    return found if isinstance(found, HbmBudget) else None
