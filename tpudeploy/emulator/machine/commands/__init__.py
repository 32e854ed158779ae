"""The commands that a node answers itself instead of the system: a call of one, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tpudeploy.emulator.machine.node import NodeMachine
from tpudeploy.emulator.machine.shims import ShimCall


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    node: NodeMachine
    command: ShimCall

    @property
    def words(self) -> tuple[str, ...]:
        return self.command.words

    def file(self, name: str) -> Path | None:
        """Return the file that a word names; None where it is not the node's: no other file is touched."""
        path = Path(self.command.folder) / name
        return path if self.node.root.holds(path) else None


@dataclass(frozen=True, slots=True)
class CommandResult:
    code: int
    output: bytes = b""
    errors: bytes = b""


def success(output: str) -> CommandResult:
    return CommandResult(0, output.encode())


def failure(code: int, errors: str) -> CommandResult:
    return CommandResult(code, b"", errors.encode())
