"""A diagnosis, one line a precondition: how it stands, what was found, what to do."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.diagnosis import Diagnosis, Finding, Grade
from tpudeploy.views import words
from tpudeploy.views.paint import Paint


def doctor(of: Diagnosis, paint: Paint, *, width: int | None, emulated: bool) -> str:
    """`width` as in `views.zones`."""
    where = f" in {of.project}" if of.project else ""
    lines = [f"{paint.bold(of.name)}, {of.type}{where}", ""]
    column = max(len(f.check) for f in of.findings)
    lines += [line for finding in of.findings for line in _finding(finding, column, paint, width)]
    lines += ["", _summary(of, paint)]
    if emulated:
        lines.append(paint.yellow("On the emulator: the project and all in it is made up."))
    return "\n".join(lines)


def _finding(of: Finding, column: int, paint: Paint, width: int | None) -> Iterator[str]:
    grade = of.grade.ljust(max(map(len, Grade)))
    indent = " " * (2 + len(grade) + 2 + column + 2)
    head = f"  {grade}  {of.check.ljust(column)}  "
    first, *rest = words.wrapped(head + words.plain(of.message), width, indent=indent)
    yield first.replace(grade, _coloured(of.grade, grade, paint), 1)
    yield from rest
    yield from (paint.dim(line) for line in words.advice(of.hint, width, indent=indent))


def _coloured(grade: Grade, text: str, paint: Paint) -> str:
    match grade:
        case Grade.OK:
            return paint.green(text)
        case Grade.FAIL:
            return paint.red(text)
        case Grade.WARN | Grade.UNKNOWN:
            return paint.yellow(text)


def _summary(of: Diagnosis, paint: Paint) -> str:
    counts = {grade: of.count(grade) for grade in (Grade.FAIL, Grade.WARN, Grade.UNKNOWN)}
    told = ", ".join(f"{count} {_WORDS[grade]}" for grade, count in counts.items() if count)
    if not told:
        return paint.green("Nothing stands in the way.")
    return (paint.red if counts[Grade.FAIL] else paint.yellow)(f"{told[0].upper()}{told[1:]}.")


_WORDS = {
    Grade.FAIL: "to be mended before `apply`",
    Grade.WARN: "worth a look",
    Grade.UNKNOWN: "that could not be told",
}
