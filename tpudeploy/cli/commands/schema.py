"""The JSON Schema of profiles, for editors."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(given: argparse.Namespace, context: Context) -> int:
    from tpudeploy.config.jsonschema import json_schema

    del given
    context.terminal.data(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return exits.SUCCESS
