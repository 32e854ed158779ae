"""Options that say what a plan is about: what plan, apply and destroy share."""

from __future__ import annotations

import argparse
from typing import TypedDict

from tpudeploy.cli import options
from tpudeploy.domain.errors import UsageError


class Asked(TypedDict):
    """The arguments of `Workspace.plan` beside the profiles."""

    destroy: bool
    adopt: bool
    refresh: bool
    refresh_only: bool
    replace: list[str]
    target: list[str]


_APART = (
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


def replacing(parser: argparse.ArgumentParser) -> None:
    options.several(
        parser,
        "--replace",
        "Replace the slices of this deployment, NAME, or of this replica, NAME[0] (repeatable).",
        metavar="ADDR",
    )


def asked(given: argparse.Namespace, *, destroy: bool = False) -> Asked:
    """Raise `errors.UsageError` for what does not go together."""
    known: Asked = {
        "destroy": destroy,
        "adopt": getattr(given, "adopt", False),
        "refresh": getattr(given, "refresh", True),
        "refresh_only": getattr(given, "refresh_only", False),
        "replace": getattr(given, "replace", []),
        "target": given.target,
    }
    given_too = {name for name, value in known.items() if value}
    for one, other in _APART:
        if {one, other} <= given_too:
            said = f"-{one.replace('_', '-')} and -{other.replace('_', '-')}"
            raise UsageError(f"{said} do not go together.", hint="Leave one out.")
    if known["refresh_only"] and not known["refresh"]:
        raise UsageError("-refresh-only needs a look at the cloud.", hint="Leave out -refresh=false.")
    if known["adopt"] and not known["refresh"]:
        raise UsageError("-adopt needs a look at the cloud.", hint="Leave out -refresh=false.")
    return known
