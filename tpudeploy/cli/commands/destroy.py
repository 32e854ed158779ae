"""Delete everything that was created for PROFILE, and wait until it is gone."""

from __future__ import annotations

import argparse

from tpudeploy.cli import options, planning
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.progress import teller


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.flag(parser, "auto-approve", "Skip the approval prompt.")
    options.lock_timeout(parser)
    planning.arguments(parser)
    options.backend(parser)
    options.events(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    loaded = context.load_each(given.profiles, given)
    workspace = context.workspace(given.profiles, lock_timeout=given.lock_timeout)
    tell = teller(context.terminal, as_json=given.json)
    asked = planning.asked(given, destroy=True)
    plan = workspace.plan(loaded.valid, **asked, invalid=loaded.invalid, on_event=tell)
    question = "Do you really want to destroy this? There is no undo."
    return carry_out(given, context, workspace, plan, question=question)
