"""Describe diagnostics and errors as text, each diagnostic with its line of YAML and a caret under the fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity

Paint = Callable[[str, str], str]  # from the name of a style (bold, dim, red, yellow) and a text to the styled text

_WIDEST = 160
# Characters that hide, reorder or erase what is beside them, as ranges of a pattern; tabs and line feeds stay.
_CONTROLS = r"\x00-\x08\x0b-\x1f"  # of terminals
# The other controls; soft hyphens; what reorders text (UAX 9); invisible spaces, operators and fillers; line breaks;
# half pairs; annotations and tags. The joiners U+200C and U+200D stay, because emoji and several scripts need them.
_INVISIBLE = (
    r"\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    r"\ud800-\udfff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
_NEVER_OURS = re.compile(f"[{_INVISIBLE}]")  # controls of terminals are also what our own colour is made of


def plain(text: str) -> str:
    """Return untrusted text that is safe to show: each character that hides or reorders text becomes a replacement."""
    return _CONTROL.sub("\ufffd", text)


def visible(text: str) -> str:
    """Return text with colour of ours that is safe to show, where `plain` was forgotten for a part of it."""
    return _NEVER_OURS.sub("\ufffd", text)


def escaped(document: str) -> str:
    """Return a JSON document in which such characters are written as escapes: it means the same, and shows them."""
    return _NEVER_OURS.sub(lambda match: _escape(match[0]), document)


def visible_tree(tree: Any) -> Any:
    """Return a JSON document whose texts and keys are safe to show."""
    match tree:
        case str():
            return plain(tree)
        case dict():
            return {plain(str(key)): visible_tree(value) for key, value in tree.items()}
        case list():
            return [visible_tree(value) for value in tree]
        case _:
            return tree


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


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
