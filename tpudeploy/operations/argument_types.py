"""Parse a value as people write it on the command line: a duration, an amount, a count.

Each parser raises argparse.ArgumentTypeError with what is wrong and what to write instead.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterator

from tpudeploy.config.scalars import MOST_SECONDS, Duration

_MOST_COUNT, _MOST_AMOUNT, _MOST_SPEED = 10**9, 10**9, 10**6
_MILLISECONDS = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s)"
_RANGE = re.compile(r"([0-9]{1,9})\.\.([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")


def duration(text: str) -> float:
    """Return seconds from `90s`, `15m`, `2h` or `7d`, as in profiles, or from a bare number."""
    whole = _whole(text, most=MOST_SECONDS)
    try:
        return float(Duration.parse(text)) if whole is None else float(whole)
    except ValueError as cause:
        raise ArgumentTypeError(f"`{text}` is not a duration; write 90s, 15m, 2h or 7d") from cause


def seconds(text: str) -> float:
    """Return seconds above zero from a latency: 500ms, 0.5s, or a duration."""
    match = re.fullmatch(_MILLISECONDS, text)
    unit = 1000 if match is not None and match[2] == "ms" else 1
    value = duration(text) if match is None else float(match[1]) / unit
    if not value:
        raise ArgumentTypeError(f"`{text}` is no time at all; write 500ms, 90s or 15m")
    return value


def latency(text: str) -> float:
    """Return seconds from 2.5, or from a latency as `seconds` reads it."""
    value = _decimal(text)
    if value is None:
        return seconds(text)
    if not 0 < value <= _MOST_COUNT:
        raise ArgumentTypeError(f"`{text}` is not a time to wait for a token; write 2.5")
    return value


def port(text: str) -> int:
    """Return a TCP port, or 0 for any free one."""
    number = _whole(text, most=(1 << 16) - 1)
    if number is None:
        raise ArgumentTypeError(f"`{text}` is not a port; ports go from 0 (any free port) to 65535")
    return number


def count(text: str) -> int:
    """Return a positive integer."""
    number = _whole(text, most=_MOST_COUNT)
    if not number:
        raise ArgumentTypeError(f"`{text}` is not a positive integer of at most {_MOST_COUNT:,}")
    return number


def index(text: str) -> int:
    """Return an integer from 0 on."""
    number = _whole(text, most=_MOST_COUNT)
    if number is None:
        raise ArgumentTypeError(f"`{text}` is not an index; write 0, 1, 2, …")
    return number


def amount(text: str) -> float:
    """Return an amount of USD, as 2.50 or $2.50."""
    value = _decimal(text.removeprefix("$"))
    if value is None or not 0 < value <= _MOST_AMOUNT:
        raise ArgumentTypeError(f"`{text}` is not an amount of USD; write 2.50")
    return value


def speed(text: str) -> float:
    """Return how many times faster than the clock on the wall."""
    value = _decimal(text)
    if value is None or not 0 < value <= _MOST_SPEED:
        raise ArgumentTypeError(f"`{text}` is not a speed; write a number above zero, e.g. 10")
    return value


def counts(text: str) -> tuple[int, ...]:
    """Return positive integers, as 1,2,8 or 1..64."""
    try:
        return _numbers(text)
    except ValueError as cause:
        raise ArgumentTypeError(f"{cause}; write 1,2,8, or 1..64 for 1, 2, 4 … 64") from cause


def _whole(text: str, *, most: int) -> int | None:
    """Return an integer from 0 to `most` in ASCII digits, or None for any other text."""
    number = int(text) if re.fullmatch(r"[0-9]{1,15}", text) else -1
    return number if 0 <= number <= most else None


def _decimal(text: str) -> float | None:
    """Return a number without a sign or an exponent, or None for any other text."""
    return float(text) if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}", text) else None


def _numbers(text: str) -> tuple[int, ...]:
    """Parse `1,2,8`, or `1..64` for 1, 2, 4 and so on to 64; sorted, without duplicates. Raise ValueError."""
    values: set[int] = set()
    for part in text.replace("…", "..").split(","):
        stripped = part.strip()
        if span := _RANGE.fullmatch(stripped):
            values.update(_doublings(int(span[1]), int(span[2])))
        elif _NUMBER.fullmatch(stripped):
            values.add(int(stripped))
        else:
            raise ValueError(f"`{stripped}` is not a number")
    if min(values) < 1:
        raise ValueError("0 is not a count")
    return tuple(sorted(values))


def _doublings(first: int, last: int) -> Iterator[int]:
    if not 1 <= first <= last:
        raise ValueError(f"`{first}..{last}` does not go up from 1")
    while first <= last:
        yield first
        first *= 2
