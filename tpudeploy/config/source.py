"""Decode the bytes of a source into text with locations; each way to fail is a diagnostic."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from sys import intern

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.config.tokens import masked
from tpudeploy.domain.diagnostics import Diagnostic, Location

# YAML's own line breaks, so that lines here and lines in the parser's marks are the same lines.
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
# A class of what is refused compiles ten times faster than one of what is allowed.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


class Source:
    """A text with a name. `lines` are for display: text that looks like a credential is masked in them.

    `first_line` is 1 for a file, and the ordinal of a `--set` argument. Locations hold the text of their line only if
    it `may_be_quoted`. `is_masked`: there is such text.
    """

    def __init__(self, name: str, text: str, first_line: int = 1, *, may_be_quoted: bool = True) -> None:
        self.name = name
        self.text = text
        self.first_line = first_line
        self.may_be_quoted = may_be_quoted
        masked_text = masked(text)
        self.is_masked = masked_text != text
        # The profiles of a fleet have most of their lines in common: each is kept once.
        self.lines = tuple(map(intern, _split_lines(masked_text)))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *(match.end() for match in _BREAK.finditer(self.text)))

    def location(self, line: int, column: int, width: int = 1) -> Location:
        """Return the location of a line and a column, both counted from 0."""
        text = self.lines[line] if self.may_be_quoted and line < len(self.lines) else ""
        return Location(file=self.name, line=self.first_line + line, column=column + 1, width=max(width, 1), text=text)

    def location_of(self, start: int, end: int) -> Location:
        """Return the location of a range of offsets; a range over several lines is cut at the end of the first."""
        line = bisect_right(self._starts, start) - 1
        stop = _BREAK.search(self.text, start, end)
        return self.location(line, start - self._starts[line], (stop.start() if stop else end) - start)


def _split_lines(text: str) -> list[str]:
    # Most profiles are ASCII and have one kind of line break, for which a pattern takes ten times as long.
    return text.split("\n") if text.isascii() and "\r" not in text else _BREAK.split(text)


def decode(name: str, content: bytes, *, may_be_quoted: bool = True) -> Source | Diagnostic:
    if len(content) > MAX_BYTES:
        limit = MAX_BYTES // 1024
        return problem(
            codes.TOO_LARGE,
            f"The file is larger than {limit} KiB",
            Location(file=name, line=1, column=1),
            hint="a profile is a page of text; is this the right file?",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _not_text(name, content, error.start, may_be_quoted=may_be_quoted)
    return _without_control(Source(name, text, may_be_quoted=may_be_quoted))


def argument(name: str, text: str, ordinal: int) -> Source | Diagnostic:
    """Return a command-line argument as a source, or a diagnostic if it contains bytes that are not text."""
    return _without_control(Source(name, text, ordinal))


def _not_text(name: str, content: bytes, offset: int, *, may_be_quoted: bool) -> Diagnostic:
    before = content[:offset].decode("utf-8-sig", "replace")
    at = Source(name, before, may_be_quoted=may_be_quoted).location_of(len(before), len(before) + 1)
    return problem(
        codes.NOT_TEXT,
        f"Not UTF-8 text: byte 0x{content[offset]:02x}",
        at,
        hint="save the file as UTF-8",
    )


def _without_control(source: Source) -> Source | Diagnostic:
    match = _CONTROL.search(source.text)
    if match is None:
        return source
    at = source.location_of(match.start(), match.end())
    return problem(
        codes.CONTROL_CHARACTER,
        f"Control character U+{ord(match[0]):04X}",
        Location(file=at.file, line=at.line, column=at.column),
        hint='a profile is text; inside double quotes, write such a character as an escape, e.g. "\\e"',
    )
