"""Define the options that plan, apply and destroy share: what a plan is about."""

from __future__ import annotations

import argparse
from typing import TypedDict

from tpudeploy.cli import options
from tpudeploy.domain.errors import UsageError


class PlanArguments(TypedDict):
    """Holds the arguments of `Workspace.plan` beside the profiles."""

    destroy: bool
    adopt: bool
    refresh: bool
    refresh_only: bool
    replace: list[str]
    target: list[str]


_EXCLUSIVE = (
    ("destroy", "replace"),
    ("destroy", "adopt"),
    ("adopt", "replace"),
    ("refresh_only", "destroy"),
    ("refresh_only", "replace"),
    ("refresh_only", "adopt"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    options.several(
        parser, "--target", "Plan only this deployment, NAME, or this replica, NAME[0] (repeatable).", metavar="ADDR"
    )
    options.parallelism(parser)


def replace_option(parser: argparse.ArgumentParser) -> None:
    options.several(
        parser,
        "--replace",
        "Replace the slices of this deployment, NAME, or of this replica, NAME[0] (repeatable).",
        metavar="ADDR",
    )


def plan_arguments(args: argparse.Namespace, *, destroy: bool = False) -> PlanArguments:
    """Return the arguments of a plan. Raise `errors.UsageError` for options that exclude each other."""
    arguments: PlanArguments = {
        "destroy": destroy,
        "adopt": getattr(args, "adopt", False),
        "refresh": getattr(args, "refresh", True),
        "refresh_only": getattr(args, "refresh_only", False),
        "replace": getattr(args, "replace", []),
        "target": args.target,
    }
    present = {name for name, value in arguments.items() if value}
    for one, other in _EXCLUSIVE:
        if {one, other} <= present:
            names = f"-{one.replace('_', '-')} and -{other.replace('_', '-')}"
            raise UsageError(f"{names} cannot be combined.", hint="Leave one out.")
    if arguments["refresh_only"] and not arguments["refresh"]:
        raise UsageError("-refresh-only needs to read the cloud.", hint="Leave out -refresh=false.")
    if arguments["adopt"] and not arguments["refresh"]:
        raise UsageError("-adopt needs to read the cloud.", hint="Leave out -refresh=false.")
    return arguments
