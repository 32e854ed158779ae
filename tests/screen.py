"""What stands on a terminal once it has been told all that: lines, as wide as it is; it knows what we use, and no more."""

from __future__ import annotations

import re
from unicodedata import east_asian_width

_TOKEN = re.compile(r"\x1b\[(?P<count>\d*)(?P<order>[A-Za-z])|(?P<text>[^\x1b])", re.DOTALL)


_SECOND_CELL = "\0"  # of a wide character


class Screen:
    """Rows from the first ever shown, so that what scrolled away can be read too.

    A row that was full goes on in the next: made wider or narrower, both are broken anew, as terminals do.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._rows = [""]
        self._goes_on = [False]
        self._row = self._column = 0

    def shows(self, text: str) -> list[str]:
        """Feed it; every line that stands there then."""
        ends = 0
        for token in _TOKEN.finditer(text):
            assert token.start() == ends, f"no order that we know: {text[ends : ends + 20]!r}"
            ends = token.end()
            if token["text"]:
                self._write(token["text"])
            else:
                self._obey(token["order"], int(token["count"] or 0))
        assert ends == len(text), f"no order that we know: {text[ends:]!r}"
        return self.lines

    def resize(self, columns: int) -> None:
        """The cursor must stand at the beginning of the last line, as it does between frames."""
        assert (self._row, self._column) == (len(self._rows) - 1, 0)
        lines, self.columns = self.lines, columns
        self._rows, self._goes_on = [], []
        for line in lines:
            pieces = [line[at : at + columns] for at in range(0, len(line), columns)] or [""]
            self._rows += pieces
            self._goes_on += [True] * (len(pieces) - 1) + [False]
        self._row = len(self._rows) - 1

    @property
    def lines(self) -> list[str]:
        lines, begun = [], ""
        for row, goes_on in zip(self._rows, self._goes_on, strict=True):
            begun += row
            if not goes_on:
                lines.append(begun.rstrip().replace(_SECOND_CELL, ""))
                begun = ""
        return lines

    def _write(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":  # the terminal's driver adds the return
            self._goes_on[self._row] = False
            self._next()
        else:
            if self._column == self.columns:
                self._goes_on[self._row] = True
                self._next()
            cells = f"{character}{_SECOND_CELL}" if east_asian_width(character) in {"W", "F"} else character
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + cells + row[self._column + len(cells) :]
            self._column += len(cells)

    def _next(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append("")
            self._goes_on.append(False)

    def _obey(self, order: str, count: int) -> None:
        match order:
            case "m":
                pass  # colour
            case "A":
                self._row = max(0, self._row - max(1, count))
            case "J" | "K":
                self._rows[self._row] = self._rows[self._row][: self._column]
                self._goes_on[self._row] = False
                if order == "J":
                    del self._rows[self._row + 1 :], self._goes_on[self._row + 1 :]
            case _:
                raise AssertionError(f"no order that we know: {order}")
