"""One row of trouble: which calls it strikes. What it then does stands in faults.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Self

from tpudeploy.emulator.faults import FAULTS

_PATTERNS = ("zone", "method", "name", "type", "model")
_COUNTS = ("attempt", "call")
_DAY, _HOUR = 86400.0, 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """`patterns` and `counts` are what must fit; `options` what the fault is told.

    `until` is in seconds since the cloud began, infinite for always; `hours` are the hours of the day (UTC) at which
    the row begins and ceases to hold, None for all day.
    """

    fault: str
    patterns: Mapping[str, str]
    counts: Mapping[str, tuple[int, float]]
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
            close = get_close_matches(str(name), FAULTS, n=1)
            raise ValueError(f"unknown fault `{name}`" + (f"; did you mean `{close[0]}`?" if close else ""))
        fault = FAULTS[name]
        unknown = set(row) - {"fault", "times", "chance", "until", "hours", *_PATTERNS, *_COUNTS, *fault.options}
        if unknown:
            raise ValueError(f"`{name}` takes no {', '.join(f'`{key}`' for key in sorted(unknown))}")
        return cls(
            fault=name,
            patterns={"method": fault.method} | {key: str(row[key]) for key in _PATTERNS if key in row},
            counts={key: _range(row[key]) for key in _COUNTS if key in row},
            until=float(row.get("until", "inf")),
            hours=_hours(row["hours"]) if "hours" in row else None,
            times=float(row.get("times", "inf")),
            chance=float(row.get("chance", 1.0)),
            options={key: row.get(key, default) for key, default in fault.options.items()},
        )

    def fits(self, facts: Mapping[str, str], counts: Mapping[str, int]) -> bool:
        if FAULTS[self.fault].of_zones and not facts.get("zone"):
            return False
        return all(fnmatchcase(facts.get(key, ""), pattern) for key, pattern in self.patterns.items()) and all(
            first <= counts[key] <= last for key, (first, last) in self.counts.items()
        )

    def ends_at(self, now: float, began: float) -> float | None:
        """When this row ceases to hold, in seconds since the epoch; infinite for never, None where it does not hold."""
        if now >= began + self.until:
            return None
        if self.hours is None:
            return began + self.until
        first, last = self.hours
        since = (now - first * _HOUR) % _DAY
        length = (last - first) % 24 * _HOUR or _DAY
        return None if since >= length else min(now - since + length, began + self.until)

    def told(self) -> dict[str, Any]:
        """The options that were set, or have a default."""
        return {key: value for key, value in self.options.items() if value is not None}


def _range(written: int | str) -> tuple[int, float]:
    """`3`, `2-4`, `2-` (and every later one)."""
    first, dash, last = str(written).partition("-")
    return int(first), float(last or "inf") if dash else int(first)


def _hours(written: str) -> tuple[float, float]:
    """`6-22`, `22-6` (over midnight)."""
    first, _, last = written.partition("-")
    return float(first) % 24, float(last) % 24


def next_hour(hour: float, now: float) -> float:
    """The next moment, in seconds since the epoch, at which the UTC clock says `hour`."""
    return now + ((hour * _HOUR - now) % _DAY or _DAY)
