"""Print the JSON Schema of profiles, for editors, or of a document that --json prints, for programs."""

from __future__ import annotations

import argparse
import json

from tpudeploy.cli import exits
from tpudeploy.cli.context import Context

_PROFILE = "profile"


def arguments(parser: argparse.ArgumentParser) -> None:
    from tpudeploy.views.schemas import SCHEMAS

    names = (_PROFILE, *SCHEMAS)
    about = f"The name in the `format` of a document (default: {_PROFILE}): {', '.join(names)}."
    parser.add_argument("what", metavar="WHAT", nargs="?", choices=names, default=_PROFILE, help=about)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.json:
        context.reply.set_text(text(args.what))
    else:
        context.terminal.data(text(args.what))
    return exits.SUCCESS


def text(what: str = _PROFILE) -> str:
    """Return a schema. That of profiles is also in profiles/profile.schema.json, which their first lines name."""
    if what == _PROFILE:
        from tpudeploy.config.jsonschema import json_schema

        return json.dumps(json_schema(), indent=2, ensure_ascii=False)
    from tpudeploy.views import schemas

    return schemas.text(what)
