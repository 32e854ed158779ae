"""What only the command line has of `apply`: saved plans, approval, and options that do not go together."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tpudeploy.cli import options
from tpudeploy.cli.approval import carry_out
from tpudeploy.cli.context import Context
from tpudeploy.cli.operation_command import add_arguments
from tpudeploy.cli.progress import event_printer
from tpudeploy.domain.errors import UsageError
from tpudeploy.operations.apply import OPERATION
from tpudeploy.plans import Plan, is_saved

# The options that would change a saved plan: their attributes and names.
_ONLY_WITH_PROFILES: Mapping[str, str] = {
    "overlays": "file",
    "sets": "set",
    "adopt": "adopt",
    "replace": "replace",
    "start": "start",
    "target": "target",
    "refresh_only": "refresh-only",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, OPERATION)


def run(args: argparse.Namespace, context: Context) -> int:
    if args.watch and args.wait != "serving":
        raise UsageError(f"-watch replaces what serves, and -wait {args.wait} ends before that.", hint="Leave one out.")
    if args.watch and args.target:
        raise UsageError("-watch keeps whole deployments alive, and -target names a part.", hint="Leave one out.")
    began = context.clock.now()
    plan = _saved_plan(args, context)
    if plan is not None:
        workspace = context.workspace(args.profiles, backend=plan.backend, lock_timeout=args.lock_timeout)
    else:
        loaded = context.load_each(args.profiles, args)
        workspace = context.workspace(args.profiles, lock_timeout=args.lock_timeout)
        with workspace.adapters.within(args.timeout):
            plan = workspace.plan(
                loaded.valid,
                adopt=args.adopt,
                refresh_only=args.refresh_only,
                replace=args.replace,
                start=args.start,
                target=args.target,
                invalid=loaded.invalid,
                on_event=event_printer(context.terminal, as_json=args.json),
            )
    # The time for the approval does not count, because a person takes it.
    timeout = None if args.timeout is None else max(args.timeout - (context.clock.now() - began), 0.0)
    return carry_out(
        args,
        context,
        workspace,
        plan,
        OPERATION,
        wait=args.wait,
        timeout=timeout,
        watch=args.watch,
        max_cost=args.max_cost,
    )


def _saved_plan(args: argparse.Namespace, context: Context) -> Plan | None:
    """Return the saved plan that is named instead of profiles, or None.

    Raise `errors.UsageError` if it is not named alone, or with an option that would change it.
    """
    saved_files = [path for path in args.profiles if is_saved(context.folder / path)]
    if not saved_files:
        return None
    if len(args.profiles) > 1:
        raise UsageError(
            f"{saved_files[0]} is a saved plan and must be applied alone.",
            hint="Pass either the saved plan or profiles.",
        )
    for attribute, option in _ONLY_WITH_PROFILES.items():
        if options.is_written(option, getattr(args, attribute)):
            raise UsageError(
                f"{saved_files[0]} is a saved plan, and -{option} would change it.",
                hint="Make a new plan with that option: `tpudeploy plan`.",
            )
    return Plan.load(context.folder / saved_files[0])
