"""The hours of the week in which a deployment runs (`lifecycle.hours`), in the time of their zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = f"(?:{'|'.join(_DAYS)})"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_ZONE = "[A-Za-z_]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}"
_LIST = f"{_DAY}(?:-{_DAY})?(?:,{_DAY}(?:-{_DAY})?){{0,6}}"
HOURS_PATTERN = f"^(?:{_LIST} )?{_CLOCK}-(?:{_CLOCK}|24:00) {_ZONE}$"
_MINUTE, _DAY_MINUTES, _WEEK = 60, 24 * 60, 7
_MONTH_DAYS = 31
_UTC = frozenset({"UTC", "Etc/UTC"})


class UnknownZone(ValueError):
    """A time zone that does not exist, or that this computer knows nothing about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The hours on some days of each week. `text` is as the profile writes them.

    `days` are those on which they begin, 0 for Monday. `opens` and `closes` are minutes after midnight by the clock on
    the wall of `zone`; hours that cross midnight close after 24 * 60.
    """

    text: str
    days: tuple[int, ...]
    opens: int
    closes: int
    zone: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the hours that `text` says, as in `Mon-Fri 08:00-19:00 Europe/Berlin`, or `22:00-06:00 UTC` each day.

        Raise ValueError for another form, hours that are empty or never close, and `UnknownZone` for a time zone that
        does not exist.
        """
        if re.match(HOURS_PATTERN, text) is None or text.endswith("\n"):
            raise ValueError(f"`{text}` is not hours of a week")
        *days, times, zone = text.split(" ")
        opens, closes = map(_minutes, times.split("-"))
        if closes < opens:
            closes += _DAY_MINUTES
        hours = cls(
            text=text, days=_days(days[0]) if days else tuple(range(_WEEK)), opens=opens, closes=closes, zone=zone
        )
        if opens == closes or (closes - opens == _DAY_MINUTES and len(hours.days) == _WEEK):
            raise ValueError(f"`{text}` never closes, or never opens")
        time_zone(zone)
        return hours

    @property
    def seconds(self) -> int:
        """Return the time from opening to closing of one day, by the clock on the wall."""
        return (self.closes - self.opens) * _MINUTE

    def covers(self, other: Hours) -> bool:
        """Return whether these hours contain the other ones. Clocks of two zones may differ: their hours never do."""
        return self.zone == other.zone and other._week <= self._week

    @property
    def _week(self) -> frozenset[int]:
        """Return the minutes of a week, from midnight before Monday on."""
        minutes = (day * _DAY_MINUTES + minute for day in self.days for minute in range(self.opens, self.closes))
        return frozenset(minute % (_WEEK * _DAY_MINUTES) for minute in minutes)

    @property
    def most_seconds_a_month(self) -> int:
        """Return how long it runs at most in a month: in one of 31 days that begins on the least favorable weekday."""
        counts = (sum((first + day) % _WEEK in self.days for day in range(_MONTH_DAYS)) for first in range(_WEEK))
        return max(counts) * self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time in which a deployment runs without a break, in seconds since the epoch. It runs no more at `ends`."""

    begins: float
    ends: float


def current_span(hours: Hours, now: float) -> Span | None:
    """Return the span that `now` is in, or None outside of the hours."""
    return next((span for span in _spans(hours, now) if span.begins <= now < span.ends), None)


def next_opening(hours: Hours, now: float) -> float:
    """Return when the hours begin next after `now`."""
    return next(span.begins for span in _spans(hours, now) if span.begins > now)


def last_closing(hours: Hours, now: float) -> float:
    """Return when the hours ended last, at `now` or before."""
    return max(span.ends for span in _spans(hours, now) if span.ends <= now)


def closing_after(hours: Hours, now: float) -> float:
    """Return when the current hours end, or outside of them the next ones."""
    return next(span.ends for span in _spans(hours, now) if span.ends > now)


def _spans(hours: Hours, now: float) -> tuple[Span, ...]:
    """Return the spans of more than a week before and after `now`, in order. Hours that touch are one span."""
    return _spans_around(hours, int(now // (_DAY_MINUTES * _MINUTE)))


@lru_cache(maxsize=256)
def _spans_around(hours: Hours, day: int) -> tuple[Span, ...]:
    spans: list[Span] = []
    for span in _single_spans(hours, day):
        if spans and span.begins <= spans[-1].ends:
            spans[-1] = Span(begins=spans[-1].begins, ends=max(spans[-1].ends, span.ends))
        else:
            spans.append(span)
    return tuple(spans)


def _single_spans(hours: Hours, day: int) -> Iterator[Span]:
    # The longest span without a break is shorter than a week, and one that began before the first of these is cut off.
    middle = date(1970, 1, 1) + timedelta(days=day)
    for offset in range(-2 * _WEEK - 1, 2 * _WEEK + 2):
        first = middle + timedelta(days=offset)
        if first.weekday() in hours.days:
            begins = _times(first, hours.opens, hours.zone)[0]
            ends = max(_times(first, hours.closes, hours.zone))
            # In spring, the hour between two and three does not exist.
            if begins < ends:
                yield Span(begins=begins, ends=ends)


def _times(day: date, minutes: int, zone: str) -> tuple[float, float]:
    """Return the moments at which the clock on the wall shows this time: two in the hour that comes twice in autumn.

    Hours open at the first and close at the second, so they are never shorter than they say. A time that is skipped in
    spring is that of an hour later.
    """
    local = datetime.combine(day + timedelta(days=minutes // _DAY_MINUTES), time(*divmod(minutes % _DAY_MINUTES, 60)))
    aware = local.replace(tzinfo=time_zone(zone))
    return aware.timestamp(), aware.replace(fold=1).timestamp()


def time_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name. Raise `UnknownZone` with the name, or with "" where none is known."""
    if name in _UTC:
        return UTC  # it needs no database
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # Windows and small containers have no database of time zones.
        has_database = bool(available_timezones())
        raise UnknownZone(name if has_database else "") from None


def _minutes(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes)


def _days(text: str) -> tuple[int, ...]:
    """Return the days of `Mon,Wed-Fri`, or of `Sat-Mon`, which wraps around."""
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        days.update((begin + step) % _WEEK for step in range((end - begin) % _WEEK + 1))
    return tuple(sorted(days))
