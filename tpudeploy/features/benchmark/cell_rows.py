"""Print the cells of a sweep as rows while it runs. `bench` and `compare --ab` share them."""

from __future__ import annotations

from tpudeploy.cli.terminal import Terminal
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import row, row_header, unfinished_row
from tpudeploy.text.words import cut

_ERASE = "K"  # the row of a cell replaces the line that was shown during it


class CellRows:
    """Prints a row for each cell on stderr, and at a terminal also the cell that is being measured."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._has_header = False

    def begin(self) -> None:
        """Print the header, once."""
        if not self._has_header:
            self._has_header = True
            self.talk(row_header(self._terminal.paint, width=self._terminal.message_width))

    def begin_cell(self, run: Run, point: Point) -> None:
        self.begin()
        self.passing(unfinished_row(run, point))

    def end_cell(self, run: Run, cell: Cell) -> None:
        self.talk(row(run, cell, self._terminal.paint, width=self._terminal.message_width))

    def passing(self, text: str) -> None:
        """Show a line that the next one replaces, at a terminal in the foreground."""
        terminal = self._terminal
        if terminal.is_drawable and terminal.is_in_foreground:
            terminal.draw(terminal.escape(_ERASE) + cut(text, terminal.size.columns - 1))

    def talk(self, text: str) -> None:
        self.clear()
        self._terminal.talk(text)

    def clear(self) -> None:
        if self._terminal.is_drawable:
            self._terminal.draw(self._terminal.escape(_ERASE))
