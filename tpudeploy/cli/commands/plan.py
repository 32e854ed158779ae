"""Show what would change, why, and which line of which file caused it. Changes nothing, but for pins with -pin."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from tpudeploy.cli import exits, options, planning
from tpudeploy.cli.context import Context
from tpudeploy.cli.plan_text import tell
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.plan import Plan


def arguments(parser: argparse.ArgumentParser) -> None:
    options.profiles(parser)
    options.option(parser, "out", "Save the plan for `tpudeploy apply FILE`.", metavar="FILE", type=Path)
    options.flag(parser, "detailed-exitcode", "Exit 2 if there are changes, or engines to verify again.")
    options.flag(parser, "destroy", "Plan the deletion.")
    options.flag(parser, "adopt", "Adopt existing slices that no state tracks.")
    planning.replace_option(parser)
    options.flag(parser, "refresh-only", "Only record in the state what changed outside; change nothing in the cloud.")
    options.flag(parser, "pin", "Look up tags and revisions again first, and pin them in tpudeploy.lock.json.")
    planning.arguments(parser)
    options.switch(
        parser, "refresh", "With `false`, plan from the states without looking at the cloud; apply looks in any case."
    )
    options.backend(parser)


def run(given: argparse.Namespace, context: Context) -> int:
    terminal = context.terminal
    asked = planning.plan_arguments(given, destroy=given.destroy)
    if given.pin and (given.destroy or given.refresh_only):
        raise UsageError("-pin is for what is to be applied.", hint="Leave out -destroy and -refresh-only.")
    loaded, emit = context.load_each(given.profiles, given), event_printer(terminal)
    workspace = context.workspace(given.profiles)
    if given.pin and not workspace.pin(loaded.valid, on_event=emit):
        terminal.talk("Nothing has moved: the pins are what they were.")
    plan = workspace.plan(loaded.valid, **asked, invalid=loaded.invalid, on_event=emit)
    tell(plan, context)
    if given.out is not None:
        plan.save(context.folder / given.out)
        terminal.talk(f"\n{_saved(given.out, plan)}")
    if plan.worst_error is not None:
        return plan.worst_error.exit_code
    return exits.CHANGES if given.detailed_exitcode and plan.has_work else exits.SUCCESS


def _saved(path: Path, plan: Plan) -> str:
    """Terraform's words; a plan that cannot be applied is saved for whoever reads it."""
    if plan.is_forbidden:
        return f"Saved the plan to: {path}. It cannot be applied: a check forbids it."
    command = shlex.join(["tpudeploy", "apply", str(path)])
    return f"Saved the plan to: {path}\n\nTo perform exactly these actions, run:\n    {command}"
