"""Align rows of cells in columns, for the tables of all views."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tpudeploy.views.words import width


def aligned(rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()) -> list[str]:
    """Return one line per row, with two spaces between columns and none at the end.

    A column is as wide as its widest cell, in cells of a terminal; a column without text is omitted. `numbers` are
    the indexes of the columns that are aligned right.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths, numbers) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int], numbers: Collection[int]) -> str:
    cells = []
    for index, (cell, column_width) in enumerate(zip(row, widths, strict=True)):
        padding = " " * (column_width - width(cell))
        if column_width:
            cells.append(padding + cell if index in numbers else cell + padding)
    return "  ".join(cells).rstrip()
