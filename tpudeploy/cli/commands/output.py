"""The outputs of a deployment: where it answers."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits, options
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import QueryFailed


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the deployment's name")
    options.backend(parser)
    options.json(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    published = context.workspace().endpoint(given.name)
    if published is None:
        raise QueryFailed(f"{given.name} has no endpoint.", hint="Run `tpudeploy apply` first.")
    context.terminal.data(json.dumps(published, indent=2) if given.json else f'endpoint = "{published["url"]}"')
    return exits.SUCCESS
