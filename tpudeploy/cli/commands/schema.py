"""The JSON Schema of profiles, for editors; or of plans, states, events, pins and runs, for programs that read them."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context

_WHAT = ("profile", "plan", "state", "events", "lock", "run")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=_WHAT, default=_WHAT[0], help="of what (default: profile)")


def run(given: argparse.Namespace, context: Context) -> int:
    context.terminal.data(text(given.what))
    return exits.SUCCESS


def text(what: str = "profile") -> str:
    """Of profiles, what stands in profiles/profile.schema.json, where the profiles' first lines send an editor."""
    if what == "profile":
        from tpudeploy.config.jsonschema import json_schema

        return json.dumps(json_schema(), indent=2, ensure_ascii=False)
    from tpudeploy.views import schemas

    return schemas.text(what)
