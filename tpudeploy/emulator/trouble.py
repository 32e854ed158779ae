"""One row of trouble: which calls it strikes. Its effect is in faults.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Self

from tpudeploy.emulator.faults import FAULTS


def suggest(word: str, candidates: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown word: the closest one, where there is one."""
    close = get_close_matches(word, candidates, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


_PATTERNS = ("zone", "method", "name", "type", "model", "api")
_COUNTS = ("attempt", "call")
_DAY, _HOUR = 86400.0, 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """`patterns` and `counts` must fit a call; `options` are those of the fault.

    It holds from `since` until `until`, in seconds since the cloud began, infinite for always; `hours` are the hours of
    the day (UTC) at which the row begins and ceases to hold, None for all day.
    """

    fault: str
    patterns: Mapping[str, str]
    counts: Mapping[str, tuple[int, float]]
    since: float
    until: float
    hours: tuple[float, float] | None
    times: float
    chance: float
    options: Mapping[str, Any]

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Self:
        """Raise ValueError for an unknown fault or key."""
        name = row.get("fault", "")
        if name not in FAULTS:
            raise ValueError(f"unknown fault `{name}`{suggest(str(name), FAULTS)}")
        fault = FAULTS[name]
        unknown = set(row) - {
            "fault",
            "times",
            "chance",
            "since",
            "until",
            "hours",
            *_PATTERNS,
            *_COUNTS,
            *fault.options,
        }
        if unknown:
            raise ValueError(f"`{name}` takes no {', '.join(f'`{key}`' for key in sorted(unknown))}")
        return cls(
            fault=name,
            patterns={"method": fault.method} | {key: str(row[key]) for key in _PATTERNS if key in row},
            counts={key: _range(row[key]) for key in _COUNTS if key in row},
            since=float(row.get("since", 0.0)),
            until=float(row.get("until", "inf")),
            hours=_hours(row["hours"]) if "hours" in row else None,
            times=float(row.get("times", "inf")),
            chance=float(row.get("chance", 1.0)),
            options={key: row.get(key, default) for key, default in fault.options.items()},
        )

    def fits(self, facts: Mapping[str, str], counts: Mapping[str, int]) -> bool:
        if FAULTS[self.fault].of_zones and not facts.get("zone"):
            return False
        return all(_fits(facts.get(key, ""), pattern) for key, pattern in self.patterns.items()) and all(
            first <= counts[key] <= last for key, (first, last) in self.counts.items()
        )

    def ends_at(self, now: float, began: float) -> float | None:
        """Return when this row ceases to hold, in seconds since the epoch; infinite for never, None if it does not."""
        if not began + self.since <= now < began + self.until:
            return None
        if self.hours is None:
            return began + self.until
        first, last = self.hours
        since = (now - first * _HOUR) % _DAY
        length = (last - first) % 24 * _HOUR or _DAY
        return None if since >= length else min(now - since + length, began + self.until)

    def edges(self, now: float, began: float) -> Iterator[float]:
        """Yield the moments from now on at which this row begins or ceases to hold, in seconds since the epoch."""
        yield from (began + self.since, began + self.until)
        if self.hours is not None:
            yield from (next_hour(hour, now) for hour in self.hours)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the options that the row sets, or that have a default."""
        return {key: value for key, value in self.options.items() if value is not None}


def _fits(text: str, pattern: str) -> bool:
    return any(fnmatchcase(text, each) for each in pattern.split("|"))


def _range(text: int | str) -> tuple[int, float]:
    """Read `3`, `2-4` or `2-` (and every later one)."""
    first, dash, last = str(text).partition("-")
    return int(first), float(last or "inf") if dash else int(first)


def _hours(text: str) -> tuple[float, float]:
    """Read `6-22`, or `22-6` (over midnight)."""
    first, _, last = text.partition("-")
    return float(first) % 24, float(last) % 24


def next_hour(hour: float, now: float) -> float:
    """Return the next moment, in seconds since the epoch, at which it is `hour` in UTC."""
    return now + ((hour * _HOUR - now) % _DAY or _DAY)
