"""One call of a shim: the words it was given, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tpudeploy.emulator.machine.node import Node
from tpudeploy.emulator.machine.shims import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    node: Node
    asked: Asked

    def file(self, name: str) -> Path | None:
        """The file that a word names, or None where it is not the node's: nothing outside its root is touched."""
        path = Path(self.asked.folder) / name
        return path if self.node.root.holds(path) else None


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    output: bytes = b""
    errors: bytes = b""


def done(output: str) -> Outcome:
    return Outcome(0, output.encode())


def failed(code: int, errors: str) -> Outcome:
    return Outcome(code, b"", errors.encode())
