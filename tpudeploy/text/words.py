"""Format durations, money and JSON values for people, and fit text and tables to a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from unicodedata import category, east_asian_width

from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.ending import EndCause, PastEnd
from tpudeploy.domain.excerpt import plain as plain  # noqa: PLC0414 - one of the words of the views

# Beside every figure that was measured on the emulator.
EMULATED = "On the emulator: no figure here says anything about a TPU."
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WIDEST = 88
_JSON = json.JSONEncoder(ensure_ascii=False)  # `json.dumps` makes one for each value of a plan
_NARROWEST = 40
_COLOUR = re.compile(r"\033\[[\d;]*m")
_WORD = re.compile(r"\s*(?:[^\s`]*`[^`]*`[^\s`]*|\S+)")  # with the spaces before it; a command in backticks is a word
_UNBROKEN = re.compile(r"\s*(?:tpudeploy |Run: |\d* \| )")
_NO_CELL = {"Mn", "Me", "Cf"}  # categories of characters that combine with the one before, or are invisible


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: `45s`, `12m 3s`, `2h 5m`, `3d 4h`.

    One that began in the future has a clock that was set back: it is 0s.
    """
    whole = max(0, round(seconds))
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def minutes(seconds: float) -> str:
    """Return an approximate duration: `10 min`."""
    return f"{max(round(seconds / _MINUTE), 1)} min"


def span(least: float, most: float) -> str:
    """Return a range of durations: `10 to 14 min`, or `14 min` if both are equal."""
    shortest, longest = minutes(least), minutes(most)
    return longest if shortest == longest else f"{shortest.removesuffix(' min')} to {longest}"


def moment(at: float) -> str:
    """Return seconds since the epoch as `2026-11-21 14:05 UTC`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def past_end(name: str, end: PastEnd) -> str:
    """Return that a deployment has ended or is outside of its hours, and what starts it again."""
    if end.until is None:
        return f"{name} ended at {moment(end.at)} ({end.why}). `tpudeploy apply -start` starts it again."
    is_closed = end.cause is EndCause.HOURS
    situation = "is outside of its hours" if is_closed else "is down"
    by_hand = "" if is_closed else " `tpudeploy apply -start` starts it now."
    starts = f"The first `apply` from {moment(end.until)} on starts it, and so does `apply -watch`.{by_hand}"
    return f"{name} {situation} since {moment(end.at)} ({end.why}). {starts}"


def ago(seconds: float) -> str:
    """Return an age in its largest unit: `now`, `5m ago`, `3h ago`, `2d ago`."""
    whole = round(seconds)
    if whole < 1:
        return "now"
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if whole >= unit:
            return f"{whole // unit}{name} ago"
    return f"{whole}s ago"


def wrapped(text: str, width: int | None, *, indent: str) -> list[str]:
    """Return lines of at most `width` columns, all but the first indented; without a width, the text unchanged."""
    if width is None:
        return [text]
    lines, line = [], ""
    for word in _WORD.findall(text):
        if line and _is_wider(f"{line}{word}", max(width, _NARROWEST)):
            lines.append(line)
            line = f"{indent}{word.lstrip()}"
        else:
            line += word
    return [*lines, line]


def fitted(text: str, width: int | None) -> str:
    """Return a text of several lines wrapped to a terminal, the rest of each line indented by two more spaces.

    A command stays on one line, so that it can be copied, and a quoted line of a file above its caret.
    """
    lines = []
    for line in text.split("\n"):
        plain_line = _COLOUR.sub("", line)
        indent = " " * (len(plain_line) - len(plain_line.lstrip()) + 2)
        lines += wrapped(line, None if _UNBROKEN.match(plain_line) else width, indent=indent)
    return "\n".join(lines)


def advice(hint: str, width: int | None, *, indent: str) -> list[str]:
    """Return the lines of a hint, indented. A command stays on one line, so that it can be copied."""
    lines = (f"{indent}{plain(line)}" for line in hint.splitlines())
    return [
        part
        for line in lines
        for part in wrapped(line, None if line.strip().startswith("Run: ") else width, indent=f"{indent}  ")
    ]


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 chip`, `1,024 chips`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def some(names: Iterable[str], most: int = 4) -> str:
    """Return `a, b, c, d and 9,996 more`: a fleet has more names than a line."""
    first = list(names)
    more = f" and {len(first) - most:,} more" if len(first) > most else ""
    return ", ".join(first[:most]) + more


def hourly(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:.2f}/h"


def daily(usd_per_hour: float) -> str:
    """Return the price of an hour as that of a day: `about $32.40 a day`."""
    return f"about ${usd_per_hour * 24:.2f} a day"


def ceiling(most: Ceiling) -> str:
    """Return `at most $5.40/h`; with unknown prices, `at least $3.61/h; 1 of 4 prices unknown`."""
    if most.is_known:
        return f"at most {hourly(most.usd_per_hour)}"
    unknown = f"{most.unknown_prices} of {plural(most.prices, 'price')} unknown"
    return f"at least {hourly(most.usd_per_hour)}; {unknown}" if most.usd_per_hour else unknown


def billed_at_once(most: Ceiling) -> str:
    """Return `At most $5.40/h may be billed at one time`, as the beginning of a sentence."""
    if most.is_known:
        return f"At most {hourly(most.usd_per_hour)} may be billed at one time"
    unknown = f"{most.unknown_prices} of {plural(most.prices, 'price')} unknown"
    return f"At least {hourly(most.usd_per_hour)} ({unknown}) may be billed at one time"


def count(size: int | None) -> str:
    """Return a number of streams or tokens, `?` where it is unknown."""
    return "?" if size is None else f"{size:,}"


def latency(value: float) -> str:
    """Return a duration, in milliseconds where it is short."""
    return f"{value * 1000:.1f}ms" if value < 0.1 else f"{value:.3f}s"  # noqa: PLR2004 - three digits either way


def number(value: float | None) -> str:
    """Return a figure with three digits at least, or "" where it is unknown."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def value(json_value: Json) -> str:
    """Return the value as JSON on one line, truncated to the width of a screen."""
    text = plain(_JSON.encode(json_value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def cut(text: str, cells: int) -> str:
    """Return the text truncated to `cells` terminal cells, with an ellipsis if it was cut."""
    if width(text) <= cells:
        return text
    ends = accumulate(map(_cells, text))
    return "".join(c for c, end in zip(text, ends, strict=True) if end < cells) + "…"


def width(text: str) -> int:
    """Return the number of terminal cells of a text; colour takes none."""
    return sum(map(_cells, _COLOUR.sub("", text)))


def _is_wider(text: str, cells: int) -> bool:
    return width(text) > cells


def _cells(character: str) -> int:
    if category(character) in _NO_CELL:
        return 0
    return 2 if east_asian_width(character) in {"W", "F"} else 1


def aligned(
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[int] = (),
    room: int | None = None,
    optional: Iterable[int] = (),
) -> list[str]:
    """Return one line per row, with two spaces between columns and none at the end.

    A column is as wide as its widest cell, in cells of a terminal; a column without text is omitted. `numbers` are
    the indexes of the columns that are aligned right. While a line is wider than `room`, the columns of `optional` are
    omitted, one after the other. If that is not enough, only the first column is aligned, and the other cells of each
    row are wrapped beside it.
    """
    lines = _lines(rows, numbers)
    for column in optional:
        if _fit(lines, room):
            break
        rows = [[*row[:column], "", *row[column + 1 :]] for row in rows]
        lines = _lines(rows, numbers)
    if room is None or _fit(lines, room):
        return lines
    first = max(width(row[0]) for row in rows) + 2
    texts = (f"{row[0]}{' ' * (first - width(row[0]))}{'  '.join(filter(None, row[1:]))}" for row in rows)
    return [part for text in texts for part in wrapped(text.rstrip(), room, indent=" " * first)]


def _lines(rows: Sequence[Sequence[str]], numbers: Collection[int]) -> list[str]:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths, numbers) for row in rows]


def _fit(lines: Iterable[str], room: int | None) -> bool:
    return room is None or not any(_is_wider(line, room) for line in lines)


def _line(row: Sequence[str], widths: Sequence[int], numbers: Collection[int]) -> str:
    cells = []
    for index, (cell, column_width) in enumerate(zip(row, widths, strict=True)):
        padding = " " * (column_width - width(cell))
        if column_width:
            cells.append(padding + cell if index in numbers else cell + padding)
    return "  ".join(cells).rstrip()
