"""Diagnostic: one of possibly many problems in the input of a user. An error, see errors.py, stops a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CodePage(NamedTuple):
    """The page of `tpudeploy explain` about a code: its title, its cause, and the fix.

    `fix` is YAML for a layer over the profile, or commands, one per line.
    """

    title: str
    meaning: str
    fix: str


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A part of one line in one source. Lines and columns count from 1; `width` is in characters.

    Line 0 is the source as a whole: an environment variable, a flag.

    `text` is the line itself, so that a view can draw it without reading the file again.
    """

    file: str
    line: int
    column: int
    width: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem. `code` is stable (`TPU1xxx` format, `TPU2xxx` checks), and `tpudeploy explain` describes it.

    `path` is the dotted key, e.g. `serving.args.block_size`. `also` is a second place (the other half of a conflict).
    """

    code: str
    message: str
    severity: Severity = Severity.ERROR
    path: str = ""
    location: Location | None = None
    hint: str = ""
    also: Location | None = None


def errors_in(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)
