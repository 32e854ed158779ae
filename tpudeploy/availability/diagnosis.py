"""Diagnosis: the preconditions between a profile and its endpoint, with results and remedies, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.serialization import to_json
from tpudeploy.text import words
from tpudeploy.text.paint import Paint


class FindingGrade(StrEnum):
    """fail: it cannot work safely until a person acts.  warn: it may not work.  unknown: it could not be checked."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One result. `check` is stable; `hint` is the remedy, one step per line."""

    check: str
    grade: FindingGrade
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    name: str
    project: str | None
    type: str
    findings: tuple[Finding, ...]

    def count(self, grade: FindingGrade) -> int:
        return sum(f.grade is grade for f in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Return the document of `doctor --json` without its format."""
        document: dict[str, object] = to_json(self)
        return {**document, "counts": {grade: self.count(grade) for grade in FindingGrade}}


def doctor(diagnosis: Diagnosis, paint: Paint, *, width: int | None, emulated: bool) -> str:
    """Return the diagnosis as text. `width` is the terminal's, in columns; None if it has none."""
    where = f" in {diagnosis.project}" if diagnosis.project else ""
    lines = [f"{paint.bold(diagnosis.name)}, {diagnosis.type}{where}", ""]
    column = max(len(f.check) for f in diagnosis.findings)
    lines += [line for finding in diagnosis.findings for line in _finding(finding, column, paint, width)]
    lines += ["", _summary(diagnosis, paint)]
    if emulated:
        lines.append(paint.yellow("On the emulator: the project and everything in it are simulated."))
    return "\n".join(lines)


def _finding(finding: Finding, column: int, paint: Paint, width: int | None) -> Iterator[str]:
    grade = finding.grade.ljust(max(map(len, FindingGrade)))
    indent = " " * (2 + len(grade) + 2 + column + 2)
    head = f"  {grade}  {finding.check.ljust(column)}  "
    first, *rest = words.wrapped(head + words.plain(finding.message), width, indent=indent)
    yield first.replace(grade, paint.styled(_STYLES.get(finding.grade, "yellow"), grade), 1)
    yield from rest
    yield from (paint.dim(line) for line in words.advice(finding.hint, width, indent=indent))


def _summary(diagnosis: Diagnosis, paint: Paint) -> str:
    counts = {grade: diagnosis.count(grade) for grade in (FindingGrade.FAIL, FindingGrade.WARN, FindingGrade.UNKNOWN)}
    text = ", ".join(f"{count} {_WORDS[grade]}" for grade, count in counts.items() if count)
    if not text:
        return paint.green("All preconditions are met.")
    return (paint.red if counts[FindingGrade.FAIL] else paint.yellow)(f"{text[0].upper()}{text[1:]}.")


_STYLES = {FindingGrade.OK: "green", FindingGrade.FAIL: "red"}
_WORDS = {
    FindingGrade.FAIL: "to fix before `apply`",
    FindingGrade.WARN: "to review",
    FindingGrade.UNKNOWN: "could not be determined",
}
