"""Numbers as people say them: durations, money, JSON values on one line."""

from __future__ import annotations

import json
import re
import textwrap
from datetime import UTC, datetime
from itertools import accumulate
from unicodedata import east_asian_width

from tpudeploy.core.pins import FOLLOWS
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.plan import Action, Change, FieldChange

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WIDEST = 88
_NARROWEST = 40
_COLOUR = re.compile(r"\033\[\d*m")
# What a terminal obeys, what XML forbids, and what breaks a line unseen; tabs and line feeds stay.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """Somebody else's text, safe to show: each character that is no text is shown as one that cannot be."""
    return _UNSEEN.sub("\ufffd", text)


def told(change: Change) -> list[FieldChange]:
    """What is to be seen of its attributes: of something new, what was written and what is pinned, not the defaults."""
    is_new = change.action is Action.CREATE
    return [f for f in change.fields if not is_new or f.origin is not None or f.path in FOLLOWS]


def duration(seconds: float) -> str:
    """`45s`, `12m 3s`, `2h 5m`, `3d 4h`: the two largest units."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def minutes(seconds: float) -> str:
    """`10 min`: what is only known roughly."""
    return f"{max(round(seconds / _MINUTE), 1)} min"


def span(least: float, most: float) -> str:
    """`10 to 14 min`, or `14 min` where both are the same."""
    shortest, longest = minutes(least), minutes(most)
    return longest if shortest == longest else f"{shortest.removesuffix(' min')} to {longest}"


def moment(at: float) -> str:
    """`2026-11-21 14:05 UTC`, of seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def ago(seconds: float) -> str:
    """`now`, `5m ago`, `3h ago`, `2d ago`: the largest unit is enough of an age."""
    whole = round(seconds)
    if whole < 1:
        return "now"
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if whole >= unit:
            return f"{whole // unit}{name} ago"
    return f"{whole}s ago"


def wrapped(text: str, width: int | None, *, indent: str) -> list[str]:
    """Lines of at most `width` columns, the later ones behind `indent`; as it is where nobody says how wide."""
    if width is None:
        return [text]
    return textwrap.wrap(
        text, max(width, _NARROWEST), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


def advice(hint: str, width: int | None, *, indent: str) -> list[str]:
    """Every line of a hint behind `indent`. A command stays on one line, however long: it is there to be copied."""
    lines = (f"{indent}{plain(line)}" for line in hint.splitlines())
    return [
        part
        for line in lines
        for part in wrapped(line, None if line.strip().startswith("Run: ") else width, indent=f"{indent}  ")
    ]


def hourly(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:.2f}/h"


def value(of: Json) -> str:
    """On one line, shortened where it would run off the screen."""
    text = plain(json.dumps(of, ensure_ascii=False))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def cut(text: str, cells: int) -> str:
    """As much of it as fits into so many cells of a terminal, with a mark where it is cut."""
    if width(text) <= cells:
        return text
    ends = accumulate(map(_cells, text))
    return "".join(c for c, end in zip(text, ends, strict=True) if end < cells) + "…"


def width(text: str) -> int:
    """The cells that it takes on a terminal; colour takes none."""
    return sum(map(_cells, _COLOUR.sub("", text)))


def _cells(character: str) -> int:
    return 2 if east_asian_width(character) in {"W", "F"} else 1
