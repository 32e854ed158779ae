"""Tables as CSV: columns by name, whatever the separator. It knows nothing of what the columns mean."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from math import isfinite

_SEPARATORS = (",", ";", "\t")
_MOST_ROWS = 100_000
_UNKNOWN = frozenset({"", "-", "n/a", "na", "none", "null", "nan", "inf", "-inf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRow:
    """A row by the names of its columns, which are in `line` of the file."""

    line: int
    values: Mapping[str, str]

    def number(self, column: str) -> float | None:
        """Return a number from 0 on; None for a word that means unknown. Raise ValueError for anything else."""
        text = self.values.get(column, "").strip()
        if text.lower() in _UNKNOWN:
            return None
        try:
            value = float(text)
        except ValueError as cause:
            raise ValueError(f"line {self.line}: `{column}` is `{text[:40]}`, which is not a number") from cause
        if not isfinite(value):
            return None
        if value < 0:
            raise ValueError(f"line {self.line}: `{column}` is {text[:40]}, below 0")
        return value


def csv_table(text: str) -> tuple[tuple[str, ...], Iterator[CsvRow]]:
    """Return the columns of a table, and its rows. Raise ValueError, also while rows are read, for what is no table.

    The separator is the one that the first line has most of: a comma, a semicolon or a tab.
    """
    if "\0" in text:
        raise ValueError(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} has a zero byte: it isn't text")
    first = next((line for line in text.split("\n", 50) if line.strip()), "")
    separator = max(_SEPARATORS, key=first.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = (row for row in _checked(reader) if any(cell.strip() for _, cell in row))
    columns = tuple(cell.strip() for _, cell in next(rows, []))
    repeated = [name for name, count in Counter(columns).items() if count > 1 and name]
    if repeated:
        raise ValueError(f"two columns are called `{repeated[0][:40]}`")
    return columns, _rows(columns, rows)


def _checked(reader: Iterator[list[str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield the cells of each row with its line. Raise ValueError for a quote that is not closed, and too many rows."""
    try:
        for row in islice(reader, _MOST_ROWS + 1):
            yield [(getattr(reader, "line_num", 0), cell) for cell in row]
    except csv.Error as cause:
        raise ValueError(f"line {getattr(reader, 'line_num', 0)}: {cause}") from cause
    if next(reader, None) is not None:
        raise ValueError(f"it has more than {_MOST_ROWS:,} rows")


def _rows(columns: Sequence[str], rows: Iterator[list[tuple[int, str]]]) -> Iterator[CsvRow]:
    for row in rows:
        line = row[0][0]
        if len(row) > len(columns):
            raise ValueError(f"line {line} has {len(row)} values, and there are {len(columns)} columns")
        cells = [cell for _, cell in row] + [""] * (len(columns) - len(row))
        yield CsvRow(line=line, values=dict(zip(columns, cells, strict=True)))
