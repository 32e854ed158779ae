"""List the commands with one line of help. Most are made from the row of an operation; the others are modules here.

A module (`_` for `-`) has `arguments(parser)` and `run(args, context)`, and its help is that of `OPERATION`, the row of
its operation, or else its own first lines. It is for what only a terminal or a pipeline
has: live tables, streams, files; or for a command that is no operation.

Why: decisions 8 and 11 in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from tpudeploy import feature_table
from tpudeploy.operations import OPERATIONS

if TYPE_CHECKING:
    from tpudeploy.cli.context import Context
    from tpudeploy.operations.declaration import Operation

# Commands that are no operation, before and after the operations.
_FIRST = {
    "init": "Write a commented profile based on a shipped one.",
}
_OTHERS = {
    "import": "Import an existing slice into the state.",
    "state": "Inspect and edit the state: list, show, mv, rm, pull, push, history.",
    "emulator": "Run a local Cloud TPU to try things out.",
    "router": "Run a deployment's router on this machine and keep its replica list current.",
    "schema": "Print the JSON Schemas of profiles, plans, states, events and other documents.",
    "completion": "Print a completion script for your shell.",
}
_SUMMARIES = {
    **_FIRST,
    **{name.replace("_", "-"): help_ for name, help_ in OPERATIONS.items() if help_},
    **_OTHERS,
    **{name: command.summary for name, command in feature_table.COMMANDS.items()},
}
# By what they are for, as `--help` shows them: those of the deployer, then those of features.
_NAMES_BY_GROUP = {
    "Start": ("init", "size", "zones", "doctor", "emulator", "explain", "completion", "version"),
    "Deploy": ("validate", "render", "plan", "apply", "destroy", "drift", "import"),
    "Operate": (
        *("status", "output", "query", "logs", "verify", "metrics", "router", "show", "state", "gc"),
        *("force-unlock", "report-host"),
    ),
    "Measure": (),
    "Automate": ("schema",),
}


def _groups() -> dict[str, tuple[str, ...]]:
    """Return the names of all commands by group; "Other" has those that no group names."""
    groups = {
        title: (*names, *(name for name, command in feature_table.COMMANDS.items() if command.group == title))
        for title, names in _NAMES_BY_GROUP.items()
    }
    grouped = frozenset(chain.from_iterable(groups.values()))
    groups["Other"] = tuple(name for name in _SUMMARIES if name not in grouped)
    return {title: names for title, names in groups.items() if names}


GROUPS: Mapping[str, tuple[str, ...]] = _groups()
COMMANDS: Mapping[str, str] = {name: _SUMMARIES[name] for name in chain.from_iterable(GROUPS.values())}
# The operations whose command has more than options, a result and an exit code.
_WITH_MODULE = frozenset(
    [
        "apply",
        "destroy",
        "gc",
        "logs",
        "plan",
        "query",
        "status",
        "validate",
    ]
)


class Command(Protocol):
    __doc__: str | None

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, context: Context) -> int: ...


class _WithForms:
    """A command to which features add forms: the first form that its arguments ask for runs."""

    def __init__(self, base: Command, forms: tuple[Any, ...]) -> None:
        self._base = base
        self._forms = forms
        self.__doc__ = "\n".join([help_of(base), *(form.__doc__ for form in forms)])

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        for each in (self._base, *self._forms):
            each.arguments(parser)

    def run(self, args: argparse.Namespace, context: Context) -> int:
        for form in self._forms:
            code: int | None = form.run(args, context)
            if code is not None:
                return code
        return self._base.run(args, context)


def help_of(chosen: Command) -> str:
    """Return the help of a command: that of its operation, `OPERATION` in a module, or else its own."""
    row: Operation | None = getattr(chosen, "OPERATION", None)
    module = chosen if row is None else sys.modules[row.run.__module__]
    return module.__doc__ or ""


def command(name: str) -> Command:
    """Return a command, which is imported when it is first needed."""
    forms = feature_table.forms(name)
    return _WithForms(_command(name), forms) if forms else _command(name)


def _command(name: str) -> Command:
    of_feature, key = feature_table.COMMANDS.get(name), name.replace("-", "_")
    home = of_feature.module if of_feature is not None else f"tpudeploy.cli.commands.{key}"
    if not home or (of_feature is None and key in OPERATIONS and name not in _WITH_MODULE):
        from tpudeploy.cli.operation_command import OperationCommand

        return OperationCommand(key)
    module: Command = import_module(home)
    return module
