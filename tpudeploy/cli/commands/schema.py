"""The JSON Schema of profiles, for editors."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context


def arguments(parser: argparse.ArgumentParser) -> None:
    del parser


def run(given: argparse.Namespace, context: Context) -> int:
    del given
    context.terminal.data(text())
    return exits.SUCCESS


def text() -> str:
    """What stands in profiles/profile.schema.json, where the profiles' first lines send an editor."""
    from tpudeploy.config.jsonschema import json_schema

    return json.dumps(json_schema(), indent=2, ensure_ascii=False)
