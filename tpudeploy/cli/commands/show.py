"""Show a saved plan; without one, what the states here remember. Asks no cloud and changes nothing."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.cli.plan_text import tell
from tpudeploy.plans import Plan
from tpudeploy.views.remembered import document, remembered


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="PLANFILE", nargs="?", help="a saved plan")
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    if given.file is None:
        states = context.workspace().remembered()
        told = json.dumps(document(states), indent=2) if given.json else remembered(states, terminal.paint)
        terminal.data(told)
        return exits.SUCCESS
    tell(Plan.load(context.folder / given.file), terminal, as_json=given.json)
    return exits.SUCCESS
