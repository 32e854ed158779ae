"""Run in a pipeline: `plan` on a pull request, `apply` after the merge, or report `drift`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from tpudeploy.adapters.pipeline import approval_key
from tpudeploy.cli import options, pipelines
from tpudeploy.cli.context import Context
from tpudeploy.cli.run import Run
from tpudeploy.domain.errors import TpudeployError

_DOES: Mapping[str, Callable[[argparse.Namespace, Context, Run], int]] = {
    "plan": pipelines.plan,
    "apply": pipelines.apply,
    "drift": pipelines.drift,
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(_DOES), help="On a pull request, after the merge, or on a schedule.")
    options.profiles(parser, nargs="*")
    parser.set_defaults(untrusted=True)  # a pull request may come from anyone
    options.option(parser, "label", "Distinguishes several comments on one pull request.", default="")
    options.option(
        parser,
        "author",
        "The login that comments on GitHub (default: %(default)s).",
        metavar="LOGIN",
        default="github-actions[bot]",
    )
    options.option(parser, "artifacts", "Write plan.json and plan.md to DIR.", metavar="DIR", type=Path)
    options.option(parser, "accept", "With `apply`: a fingerprint that you approve.", metavar="FINGERPRINT", default="")
    options.option(
        parser,
        "approval",
        "With `apply`: the -artifacts of a `plan` that was signed for this commit.",
        metavar="DIR",
        type=Path,
    )
    options.flag(parser, "resume", "With `apply`: only continue what an earlier run began, and renew runs that end.")
    options.option(
        parser, "timeout", "With `apply`: stop after this time (exit 12).", type=options.duration, default="45m"
    )
    options.flag(parser, "detailed-exitcode", "Exit 2 if there are changes, or drift.")
    options.lock_timeout(parser)
    options.parallelism(parser)
    options.backend(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    with approval_key() as key:
        workspace = context.workspace(args.profiles, lock_timeout=args.lock_timeout)
        here = Run.from_arguments(args, context, workspace, key=key)
        try:
            return _DOES[args.what](args, context, here)
        except TpudeployError as error:
            here.end(error.exit_code, error.code)
            raise
