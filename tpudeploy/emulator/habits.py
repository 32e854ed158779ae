"""What a zone does every time: each habit is a name for rows of trouble that hold as long as the cloud runs.

    habits:
      - {habit: early-preemption, zone: us-east5-a, after: 300}
      - {habit: night-capacity, zone: "us-*", opens: 22, closes: 6}

Where a row of trouble scripts one event, a habit describes a place. The times of day are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """`options` are the keys that a row may set, with their defaults; `rows` turns them into rows of trouble."""

    what: str
    options: Mapping[str, Any]
    rows: Callable[[Mapping[str, Any]], Iterator[Row]]


def troubles(row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows of trouble that one habit stands for. Raise ValueError for an unknown habit or key."""
    name = str(row.get("habit", ""))
    if name not in HABITS:
        close = get_close_matches(name, HABITS, n=1)
        raise ValueError(f"unknown habit `{name}`" + (f"; did you mean `{close[0]}`?" if close else ""))
    habit = HABITS[name]
    unknown = sorted(set(row) - {"habit", *habit.options})
    if unknown:
        raise ValueError(f"`{name}` takes no {', '.join(f'`{key}`' for key in unknown)}")
    yield from habit.rows({**habit.options, **row})


def _early_preemption(option: Mapping[str, Any]) -> Iterator[Row]:
    place = {"zone": option["zone"], "model": "SPOT"}
    yield {"fault": "timings", "waiting": 0.0, **place}
    yield {"fault": "preempt", "after": option["after"], **place}


def _internal_error(option: Mapping[str, Any]) -> Iterator[Row]:
    place = {"zone": option["zone"], "model": option["model"]}
    yield {"fault": "timings", "waiting": 0.0, **place}
    yield {"fault": "internal-error", **place}


def _common_reopening(option: Mapping[str, Any]) -> Iterator[Row]:
    yield from _closed(option["zone"], {"until": option["after"]})


def _night_capacity(option: Mapping[str, Any]) -> Iterator[Row]:
    hours = f"{option['closes']:g}-{option['opens']:g}"
    yield from _closed(option["zone"], {"hours": hours})
    if option["reclaims"]:
        yield {"fault": "preempt", "after": None, "hour": option["closes"], "zone": option["zone"], "model": "SPOT"}


def _closed(zone: str, when: Mapping[str, Any]) -> Iterator[Row]:
    """No capacity: spot is refused, and what queues is granted when the place opens."""
    yield {"fault": "stockout", "zone": zone, "model": "SPOT", **when}
    yield {"fault": "no-grant", "zone": zone, **when}


def _ignored_deletion(option: Mapping[str, Any]) -> Iterator[Row]:
    yield {
        "fault": "deletion-ignored",
        "zone": option["zone"],
        "outcome": option["outcome"],
        "takes_effect": option["takes_effect"],
    }


HABITS: Mapping[str, Habit] = {
    "early-preemption": Habit(
        what="grants spot at once, and preempts it `after` seconds of ACTIVE",
        options={"zone": "*", "after": 300.0},
        rows=_early_preemption,
    ),
    "internal-error": Habit(
        what="always provisions, then ends with code 13",
        options={"zone": "*", "model": "*"},
        rows=_internal_error,
    ),
    "common-reopening": Habit(
        what="all its zones are full, and open in the same second, `after` seconds of the cloud's life",
        options={"zone": "*", "after": 3600.0},
        rows=_common_reopening,
    ),
    "night-capacity": Habit(
        what="has capacity from the hour `opens` to the hour `closes`; `reclaims` spot in the morning",
        options={"zone": "*", "opens": 22.0, "closes": 6.0, "reclaims": True},
        rows=_night_capacity,
    ),
    "ignored-deletion": Habit(
        what="takes a deletion while PROVISIONING and does not do it. `outcome` is what its operation comes to:"
        " running (never done), done, failed. `takes_effect`: it is done after all, once the slice is ACTIVE",
        options={"zone": "*", "outcome": "running", "takes_effect": False},
        rows=_ignored_deletion,
    ),
}
