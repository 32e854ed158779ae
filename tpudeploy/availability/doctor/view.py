"""Format a diagnosis: one line for each precondition with its grade, what was observed, and what to do."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.availability.diagnosis import Diagnosis, Finding, Grade
from tpudeploy.text import words
from tpudeploy.text.paint import Paint


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
    grade = finding.grade.ljust(max(map(len, Grade)))
    indent = " " * (2 + len(grade) + 2 + column + 2)
    head = f"  {grade}  {finding.check.ljust(column)}  "
    first, *rest = words.wrapped(head + words.plain(finding.message), width, indent=indent)
    yield first.replace(grade, _coloured(finding.grade, grade, paint), 1)
    yield from rest
    yield from (paint.dim(line) for line in words.advice(finding.hint, width, indent=indent))


def _coloured(grade: Grade, text: str, paint: Paint) -> str:
    match grade:
        case Grade.OK:
            return paint.green(text)
        case Grade.FAIL:
            return paint.red(text)
        case Grade.WARN | Grade.UNKNOWN:
            return paint.yellow(text)


def _summary(diagnosis: Diagnosis, paint: Paint) -> str:
    counts = {grade: diagnosis.count(grade) for grade in (Grade.FAIL, Grade.WARN, Grade.UNKNOWN)}
    text = ", ".join(f"{count} {_WORDS[grade]}" for grade, count in counts.items() if count)
    if not text:
        return paint.green("All preconditions are met.")
    return (paint.red if counts[Grade.FAIL] else paint.yellow)(f"{text[0].upper()}{text[1:]}.")


_WORDS = {
    Grade.FAIL: "to fix before `apply`",
    Grade.WARN: "to review",
    Grade.UNKNOWN: "could not be determined",
}
