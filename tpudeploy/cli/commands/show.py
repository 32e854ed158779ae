"""Show a saved plan; without one, what the states here remember. Asks no cloud and changes nothing."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.plans import Plan
from tpudeploy.views import excerpt, jsonl
from tpudeploy.views import plan as view
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
    plan = Plan.load(context.folder / given.file)
    terminal.data(jsonl.result(plan) if given.json else view.plan(plan, terminal.paint))
    if plan.diagnostics and not given.json:
        terminal.talk(f"\n{excerpt.diagnostics(plan.diagnostics, terminal.paint)}")
    return exits.SUCCESS
