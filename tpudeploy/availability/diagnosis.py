"""Diagnosis: the preconditions between a profile and its endpoint, each with its result and its remedy."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json


class Grade(StrEnum):
    """fail: it cannot work safely until a person acts.  warn: it may not work.  unknown: it could not be checked."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@frozen
class Finding:
    """One result. `check` is stable; `hint` is the remedy, one step per line."""

    check: str
    grade: Grade
    message: str
    hint: str = ""


@frozen
class Diagnosis:
    name: str
    project: str | None
    type: str
    findings: tuple[Finding, ...]

    def count(self, grade: Grade) -> int:
        return sum(f.grade is grade for f in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Return the document of `doctor --json` without its format."""
        document: dict[str, object] = to_json(self)
        return {**document, "counts": {grade: self.count(grade) for grade in Grade}}
