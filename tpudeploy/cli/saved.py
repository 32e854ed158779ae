"""A saved plan on the command line: in the place of profiles, and without what only profiles can be told."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tpudeploy.cli.context import Context
from tpudeploy.cli.options import is_written
from tpudeploy.domain.errors import UsageError
from tpudeploy.plans import Plan, is_saved


def saved_plan(given: argparse.Namespace, context: Context, only_with_profiles: Mapping[str, str]) -> Plan | None:
    """The plan that is named where profiles could be; None where there is none among them.

    `only_with_profiles` are options that would make another plan: where they are kept, and how they are written.
    Raise `errors.UsageError` for one of them, or where more is named than goes with a saved plan.
    """
    named = [path for path in given.profiles if is_saved(context.folder / path)]
    if not named:
        return None
    if len(given.profiles) > 1:
        raise UsageError(f"{named[0]} is a saved plan: it is applied alone.", hint="Name either it or profiles.")
    for place, option in only_with_profiles.items():
        if is_written(option, getattr(given, place)):
            raise UsageError(
                f"{named[0]} is a saved plan, and -{option} would change it.",
                hint="Make a new plan with it: `tpudeploy plan`.",
            )
    return Plan.load(context.folder / named[0])
