"""A saved plan on the command line: in the place of profiles, and without what only profiles can be told."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError
from tpudeploy.plans import Plan, is_saved


def saved_plan(given: argparse.Namespace, context: Context, only_with_profiles: Iterable[str]) -> Plan | None:
    """The plan that is named where profiles could be; None where there is none among them.

    Raise `errors.UsageError` where more is named, or asked for, than goes with one.
    """
    named = [path for path in given.profiles if is_saved(context.folder / path)]
    if not named:
        return None
    if len(given.profiles) > 1:
        raise UsageError(f"{named[0]} is a saved plan: it is applied alone.", hint="Name either it or profiles.")
    asked = [name for name in only_with_profiles if getattr(given, name)]
    if asked:
        said = {"overlays": "-file", "sets": "-set"}.get(asked[0], f"-{asked[0].replace('_', '-')}")
        raise UsageError(
            f"{named[0]} is a saved plan, and {said} would change it.",
            hint="Make a new plan with it: `tpudeploy plan`.",
        )
    return Plan.load(context.folder / named[0])
