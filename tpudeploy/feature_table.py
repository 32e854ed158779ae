"""Features: what a deployment can do without, one row each. All that the rest knows of a feature is its row.

A feature is a folder of tpudeploy/features, with its nouns, logic, adapters, operations, commands, documents and view.
Without its folder, or one that it needs, its row does not count: nothing else notices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from importlib.util import find_spec

from tpudeploy.domain.frozen import frozen, replace


@frozen
class FeatureCommand:
    """A command, in a group of `--help`. Without a `module`, it is made from the row of its operation."""

    group: str
    summary: str
    module: str = ""


@frozen
class Feature:
    """What a feature adds, by name, and the module of its folder that has it.

    `results` are public names of the library. `needs` are the features that it imports.
    """

    operations: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, FeatureCommand] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


_ROWS: Mapping[str, Feature] = {
    "alerts": Feature(
        operations={"alerts": "operation"},
        commands={
            "alerts": FeatureCommand(
                group="Automate",
                summary="Write Prometheus rules, a Grafana dashboard, and how to collect metrics.",
                module="command",
            )
        },
        results={"AlertFile": "operation"},
    ),
}


def _are_here(*names: str) -> bool:
    return all(find_spec(f"tpudeploy.features.{name}") is not None for name in names)


FEATURES: Mapping[str, Feature] = {name: row for name, row in _ROWS.items() if _are_here(name, *row.needs)}


def _homes(kind: str) -> dict[str, str]:
    """Return the module of each name that features add of one kind."""
    return {
        name: f"tpudeploy.features.{folder}.{module}"
        for folder, row in FEATURES.items()
        for name, module in getattr(row, kind).items()
    }


OPERATIONS: Mapping[str, str] = _homes("operations")
RESULTS: Mapping[str, str] = _homes("results")
COMMANDS: Mapping[str, FeatureCommand] = {
    name: replace(command, module=f"tpudeploy.features.{folder}.{command.module}") if command.module else command
    for folder, row in FEATURES.items()
    for name, command in row.commands.items()
}
