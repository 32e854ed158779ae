"""A diagnostic with its line of YAML and a caret under the fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain

_WIDEST = 160


def diagnostics(of: Iterable[Diagnostic], paint: Paint) -> str:
    return "\n\n".join("\n".join(_one(d, paint)) for d in of)


def _one(of: Diagnostic, paint: Paint) -> Iterator[str]:
    word = paint.red("Error") if of.severity is Severity.ERROR else paint.yellow("Warning")
    yield paint.bold(f"{word}: {plain(of.message)}") + paint.dim(f" [{of.code}]")
    if of.location is not None:
        at = f", at {of.path}" if of.path else ""
        yield f"  on {of.location}{at}"
        yield from _quoted(of.location, paint)
    if of.also is not None:
        yield f"  and on {of.also}"
        yield from _quoted(of.also, paint)
    yield from (f"  {line}" for line in plain(of.hint).splitlines())


def _quoted(at: Location, paint: Paint) -> Iterator[str]:
    if not at.text:
        return
    number, text = str(at.line), plain(at.text.rstrip("\n"))
    start = max(0, at.column - 1 - _WIDEST // 2) if len(text) > _WIDEST else 0
    shown = text[start : start + _WIDEST]
    # Tabs stay tabs, so that the caret stands under its character in any terminal.
    before = "".join("\t" if c == "\t" else " " for c in shown[: at.column - 1 - start])
    caret = "^" * max(1, min(at.width, len(shown) - len(before)))
    yield f"   {number} | {shown}"
    yield f"   {' ' * len(number)} | {before}{paint.red(caret)}"
