"""Describe diagnostics and errors as text, each diagnostic with its line of YAML and a caret under the fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity
from tpudeploy.domain.pattern import pattern

Paint = Callable[[str, str], str]  # from the name of a style (bold, dim, red, yellow) and a text to the styled text

_WIDEST = 160
# Control characters of terminals, characters that XML forbids, and invisible line breaks; tabs and line feeds stay.
_CONTROL = pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """Return untrusted text that is safe to show: each control character becomes a replacement character."""
    return _CONTROL.sub("\ufffd", text)


def unpainted(_style: str, text: str) -> str:
    """Return the text as it is."""
    return text


def describe_diagnostics(diagnostics: Iterable[Diagnostic], paint: Paint = unpainted) -> str:
    """Return what the command line prints for diagnostics."""
    return "\n\n".join("\n".join(_lines(diagnostic, paint)) for diagnostic in diagnostics)


def describe_error(message: str, code: str, hint: str, paint: Paint = unpainted) -> str:
    """Return what the command line prints for an error without diagnostics: what happened, why, and what to do."""
    first = f"{paint('red', 'Error')}: {plain(message)} {paint('dim', f'[{code}]')}"
    return "\n".join([first, *(f"  {plain(line)}" for line in hint.splitlines())])


def _lines(diagnostic: Diagnostic, paint: Paint) -> Iterator[str]:
    is_error = diagnostic.severity is Severity.ERROR
    word = paint("red", "Error") if is_error else paint("yellow", "Warning")
    yield paint("bold", f"{word}: {plain(diagnostic.message)}") + paint("dim", f" [{diagnostic.code}]")
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
    yield f"   {' ' * len(number)} | {before}{paint('red', caret)}"
