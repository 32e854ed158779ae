"""A YAML parser's complaint in a person's words: the tab, the unquoted `${`, the missing space."""

from __future__ import annotations

import re

import yaml

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.source import Source
from tpudeploy.domain.diagnostics import Diagnostic

_TAB = re.compile(r"[ ]*\t")
# The parser's words, or the line's, and what a person most likely meant; the first row that fits is used.
_LINE, _SAID = "line", "said"
_HINTS = (
    (_LINE, r"[\[{,][^'\"]*\$\{", 'quote values that contain "${...}" inside { } or [ ]'),
    (_SAID, r"mapping values are not allowed", "quote a value that contains `: `, or check the indentation"),
    (_SAID, r"character .*cannot start any token", "quote the value"),
    (_SAID, r"expected <block end>|did not find expected key", "check the indentation and the quotes above"),
    (_SAID, r"end of stream|document start", "a quote or bracket is not closed"),
    (_SAID, r"expected ',' or|expected node content", "a bracket is not closed, or a comma is missing"),
    (_SAID, r"could not find expected ':'", "write `key: value`, with a space after the colon"),
)


def explained(error: yaml.YAMLError, source: Source) -> Diagnostic:
    line, column = _place(error, source)
    shown = source.lines[line]
    tab = _TAB.match(shown)
    if tab:
        at = source.location(line, tab.end() - 1)
        return problem(codes.TAB, "A tab in the indentation", at, hint="YAML is indented with spaces")
    said = (error.problem if isinstance(error, yaml.MarkedYAMLError) else None) or str(error)
    return problem(codes.SYNTAX, f"Invalid YAML: {said}", source.location(line, column), hint=_hint(said, shown))


def _place(error: yaml.YAMLError, source: Source) -> tuple[int, int]:
    """The parser's mark; the last character of the text where it looked for more than there was."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    written = [line for line, text in enumerate(source.lines) if text.strip()] or [0]
    line = min(mark.line, written[-1]) if mark else written[-1]
    last = max(len(source.lines[line].rstrip()) - 1, 0)
    return line, min(mark.column, last) if mark and mark.line == line else last


def _hint(said: str, shown: str) -> str:
    text = {_LINE: shown, _SAID: said}
    return next((hint for where, pattern, hint in _HINTS if re.search(pattern, text[where])), "")
