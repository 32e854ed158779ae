"""Collect what explains a deployment in a redacted archive: versions, profile, state, status, plan, history, boot logs.

It has no value of a secret, and no address, account, project or bucket, as far as they are recognized: read it before
you send it. Nothing is sent. What can't be read is in the archive as the error. Without PROFILE, it's the folder's only
profile, or the only one that is deployed.
"""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import show
from tpudeploy.domain import exits
from tpudeploy.domain.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profile(parser, is_required=False)
    parser.add_argument("-o", "--output", metavar="FILE", help="The archive (default: NAME-support.tar.gz).")
    options.flag(parser, "anonymous", "Leave out who ran commands, and where.")
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    path = args.profile or _only_profile(args, context)
    (profile,) = context.load([path], args)
    output = context.folder / (args.output or f"{profile.name}-support.tar.gz")
    show(context.workspace([path]).support_bundle(profile, output, anonymous=args.anonymous), context)
    context.terminal.explain("Read it before you send it: a text can hold what no rule recognizes.")
    return exits.SUCCESS


def _only_profile(args: argparse.Namespace, context: Context) -> str:
    """Return the folder's only profile, or the only one that is deployed. Raise `errors.UsageError` for several."""
    paths = context.expand_folders(["."])
    if len(paths) == 1:
        return paths[0]
    names = {path: context.read(path, args).name for path in paths}
    deployed = {state.deployment for state in context.workspace(paths).states()}
    of_states = [path for path, name in names.items() if name in deployed]
    if len(of_states) == 1:
        return of_states[0]
    raise UsageError(
        f"This folder has {len(paths)} profiles.", hint=f"Name one: tpudeploy support-bundle {(of_states or paths)[0]}"
    )
