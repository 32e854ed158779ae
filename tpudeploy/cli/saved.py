"""Read a saved plan that the command line names instead of profiles."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tpudeploy.cli.context import Context
from tpudeploy.cli.options import is_written
from tpudeploy.domain.errors import UsageError
from tpudeploy.plans import Plan, is_saved


def saved_plan(args: argparse.Namespace, context: Context, only_with_profiles: Mapping[str, str]) -> Plan | None:
    """Return the saved plan among the named files, or None.

    `only_with_profiles` are options that would change the plan: their attributes and names. Raise `errors.UsageError`
    for one of them, or if a saved plan is not named alone.
    """
    saved_files = [path for path in args.profiles if is_saved(context.folder / path)]
    if not saved_files:
        return None
    if len(args.profiles) > 1:
        raise UsageError(f"{saved_files[0]} is a saved plan: it is applied alone.", hint="Name either it or profiles.")
    for attribute, option in only_with_profiles.items():
        if is_written(option, getattr(args, attribute)):
            raise UsageError(
                f"{saved_files[0]} is a saved plan, and -{option} would change it.",
                hint="Make a new plan with it: `tpudeploy plan`.",
            )
    return Plan.load(context.folder / saved_files[0])
