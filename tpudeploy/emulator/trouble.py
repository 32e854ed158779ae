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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """`patterns` and `counts` are what must fit; `options` what the fault is told."""

    fault: str
    patterns: Mapping[str, str]
    counts: Mapping[str, tuple[int, float]]
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
        unknown = set(row) - {"fault", "times", "chance", *_PATTERNS, *_COUNTS, *fault.options}
        if unknown:
            raise ValueError(f"`{name}` takes no {', '.join(f'`{key}`' for key in sorted(unknown))}")
        return cls(
            fault=name,
            patterns={"method": fault.method} | {key: str(row[key]) for key in _PATTERNS if key in row},
            counts={key: _range(row[key]) for key in _COUNTS if key in row},
            times=float(row.get("times", "inf")),
            chance=float(row.get("chance", 1.0)),
            options={key: row.get(key, default) for key, default in fault.options.items()},
        )

    def fits(self, facts: Mapping[str, str], counts: Mapping[str, int]) -> bool:
        return all(fnmatchcase(facts.get(key, ""), pattern) for key, pattern in self.patterns.items()) and all(
            first <= counts[key] <= last for key, (first, last) in self.counts.items()
        )

    def told(self) -> dict[str, Any]:
        """The options that were set, or have a default."""
        return {key: value for key, value in self.options.items() if value is not None}


def _range(written: int | str) -> tuple[int, float]:
    """`3`, `2-4`, `2-` (and every later one)."""
    first, dash, last = str(written).partition("-")
    return int(first), float(last or "inf") if dash else int(first)
