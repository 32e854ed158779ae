"""What is there, how far it has come, where it answers and what it costs."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.views.status import status


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser, nargs="*")
    options.parallelism(parser)
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    workspace = context.workspace(given.profiles)
    found = workspace.status(context.load(given.profiles, given)) if given.profiles else workspace.status_of_all()
    if given.json:
        tree = {"format": "tpudeploy.status/1", "emulated": workspace.is_emulated}
        context.terminal.data(json.dumps({**tree, "deployments": [d.to_dict() for d in found]}, indent=2))
    else:
        context.terminal.data(status(found, context.terminal.paint, emulated=workspace.is_emulated))
    return exits.SUCCESS
