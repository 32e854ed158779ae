"""Diagnosis: what stands between a profile and its endpoint, precondition by precondition, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.tree import tree


class Grade(StrEnum):
    """fail: it cannot work, or not safely, before a person acts.  warn: it may not.  unknown: nobody could tell."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line. `check` is stable; `hint` what to do, one thing a line."""

    check: str
    grade: Grade
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    name: str
    project: str | None
    type: str
    findings: tuple[Finding, ...]

    def count(self, grade: Grade) -> int:
        return sum(f.grade is grade for f in self.findings)

    def to_dict(self) -> dict[str, object]:
        """What `doctor --json` prints, beside its format."""
        known: dict[str, object] = tree(self)
        return {**known, "counts": {grade: self.count(grade) for grade in Grade}}
