"""Colour text with ANSI escapes, or leave it plain: every view is readable without colour."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    """Wraps text in ANSI escapes. With `colour` False, every method returns its text unchanged.

    `mark` begins each escape, so that a terminal can tell ours from those in the text of others.
    """

    colour: bool = False
    mark: str = ""

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def red(self, text: str) -> str:
        return self._wrap("31", text)

    def green(self, text: str) -> str:
        return self._wrap("32", text)

    def yellow(self, text: str) -> str:
        return self._wrap("33", text)

    def styled(self, style: str, text: str) -> str:
        """Return the text in the style of that name: bold, dim, red, green or yellow, or "" for none."""
        return text if not style else str(getattr(self, style)(text))

    def _wrap(self, code: str, text: str) -> str:
        return f"\033[{self.mark}{code}m{text}\033[{self.mark}0m" if self.colour else text
