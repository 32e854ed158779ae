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


VERBS: Mapping[str, str] = {
    "plan": "On a pull request: comment the plan of its profiles.",
    "apply": "After the merge: apply what was approved.",
    "drift": "On a schedule: open an issue for each deployment that drifted, and close it afterwards.",
}
NEEDS_VERB = True


def arguments(parser: argparse.ArgumentParser) -> None:
    options.backend(parser)


def verb_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
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
    if verb == "apply":
        _add_apply_arguments(parser)
    else:
        options.flag(parser, "detailed-exitcode", "Exit 2 if there are changes, or drift.")
    options.lock_timeout(parser)
    options.parallelism(parser)
    options.backend(parser)


def _add_apply_arguments(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "accept", "A fingerprint that you approve.", metavar="FINGERPRINT", default="")
    approval = "The -artifacts of a `ci plan` that was signed for this commit."
    options.option(parser, "approval", approval, metavar="DIR", type=Path)
    options.flag(parser, "resume", "Only continue what an earlier run began, and renew runs that end.")
    time = "Stop after this time (exit 12)."
    options.option(parser, "timeout", time, type=options.duration, default="45m", metavar="TIME")


def run(args: argparse.Namespace, context: Context) -> int:
    with approval_key() as key:
        workspace = context.workspace(args.profiles, lock_timeout=args.lock_timeout)
        here = Run.from_arguments(args, context, workspace, key=key)
        try:
            return _DOES[args.verb](args, context, here)
        except TpudeployError as error:
            here.end(error.exit_code, error.code)
            raise
