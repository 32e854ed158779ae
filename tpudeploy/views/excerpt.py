"""Format diagnostics, each with its line of YAML and a caret under the fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain

_WIDEST = 160


def diagnostics(diagnostics: Iterable[Diagnostic], paint: Paint) -> str:
    return "\n\n".join("\n".join(_lines(d, paint)) for d in diagnostics)


def _lines(diagnostic: Diagnostic, paint: Paint) -> Iterator[str]:
    word = paint.red("Error") if diagnostic.severity is Severity.ERROR else paint.yellow("Warning")
    yield paint.bold(f"{word}: {plain(diagnostic.message)}") + paint.dim(f" [{diagnostic.code}]")
    if diagnostic.location is not None:
        at = f", at {diagnostic.path}" if diagnostic.path else ""
        yield f"  on {diagnostic.location}{at}"
        yield from _quote(diagnostic.location, paint)
    if diagnostic.also is not None:
        yield f"  and on {diagnostic.also}"
        yield from _quote(diagnostic.also, paint)
    yield from (f"  {line}" for line in plain(diagnostic.hint).splitlines())


def _quote(at: Location, paint: Paint) -> Iterator[str]:
    if not at.text:
        return
    number, text = str(at.line), plain(at.text.rstrip("\n"))
    start = max(0, at.column - 1 - _WIDEST // 2) if len(text) > _WIDEST else 0
    excerpt = text[start : start + _WIDEST]
    # Keep tabs, so that the caret is under its character whatever the terminal's tab width.
    before = "".join("\t" if c == "\t" else " " for c in excerpt[: at.column - 1 - start])
    caret = "^" * max(1, min(at.width, len(excerpt) - len(before)))
    yield f"   {number} | {excerpt}"
    yield f"   {' ' * len(number)} | {before}{paint.red(caret)}"
