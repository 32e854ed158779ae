"""Make profiles true: ask for slices, wait for a real completion, print the endpoint. Resumes an earlier run."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller
from tpudeploy.domain.errors import UsageError


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.flag(parser, "auto-approve", "do not ask")
    options.flag(parser, "adopt", "take over slices that no state remembers")
    options.option(
        parser,
        "wait",
        "how far to go: accepted, granted or serving",
        choices=("accepted", "granted", "serving"),
        default="serving",
    )
    options.option(parser, "timeout", "give up waiting after this long, e.g. 2h (exit 12)", type=options.duration)
    options.flag(parser, "watch", "then keep it alive: ask again for what is preempted, until stopped")
    options.lock_timeout(parser)
    options.parallelism(parser)
    options.backend(parser)
    options.events(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    profiles = context.load(given.profiles, given)
    workspace = context.workspace(given.profiles, lock_timeout=given.lock_timeout)
    plan = workspace.plan(profiles, adopt=given.adopt, on_event=teller(context.terminal, as_json=given.json))
    question = "Do you want to perform these actions?"
    if given.watch and given.wait != "serving":
        raise UsageError(f"-watch keeps alive what serves; -wait {given.wait} ends before.", hint="Leave one out.")
    return carry_out(
        given, context, workspace, plan, question=question, wait=given.wait, timeout=given.timeout, watch=given.watch
    )
