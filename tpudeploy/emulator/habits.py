"""What a zone does every time: each habit is a name for rows of trouble that hold as long as the cloud runs.

    habits:
      - {habit: early-preemption, zone: us-east5-a, after: 300}
      - {habit: night-capacity, zone: "us-*", opens: 22, closes: 6}

A habit of one API alone, `api: tpu` or `api: compute`, lets the two have other capacity in a zone. A row of trouble
scripts one event, and a habit describes a place. The times of day are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.emulator.trouble import suggest

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """`options` are the keys of a row beside `zone`, with their defaults; `rows` turns them into rows of trouble."""

    options: Mapping[str, Any]
    rows: Callable[[Mapping[str, Any]], Iterator[Row]]


def troubles(row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows of trouble that one habit consists of. Raise ValueError for an unknown habit or key."""
    name = str(row.get("habit", ""))
    if name not in HABITS:
        raise ValueError(f"unknown habit `{name}`{suggest(name, HABITS)}")
    habit = HABITS[name]
    unknown = sorted(set(row) - {"habit", "zone", "api", *habit.options})
    if unknown:
        raise ValueError(f"`{name}` takes no {', '.join(f'`{key}`' for key in unknown)}")
    api = {"api": row["api"]} if "api" in row else {}
    for trouble in habit.rows({"zone": "*", **habit.options, **row}):
        yield trouble | api


def _early_preemption(option: Mapping[str, Any]) -> Iterator[Row]:
    """Grant spot at once, and preempt it `after` seconds of ACTIVE."""
    place = {"zone": option["zone"], "model": "SPOT"}
    yield {"fault": "timings", "waiting": 0.0, **place}
    yield {"fault": "preempt", "after": option["after"], **place}


def _internal_error(option: Mapping[str, Any]) -> Iterator[Row]:
    """Provision always, then end with code 13."""
    place = {"zone": option["zone"], "model": option["model"]}
    yield {"fault": "timings", "waiting": 0.0, **place}
    yield {"fault": "internal-error", **place}


def _common_reopening(option: Mapping[str, Any]) -> Iterator[Row]:
    """Fill all zones, and open them in the same second, `after` seconds of the cloud's life."""
    yield from _closed(option["zone"], {"until": option["after"]})


def _night_capacity(option: Mapping[str, Any]) -> Iterator[Row]:
    """Have capacity from the hour `opens` to the hour `closes`, and with `reclaims` take back spot then."""
    hours = f"{option['closes']:g}-{option['opens']:g}"
    yield from _closed(option["zone"], {"hours": hours})
    if option["reclaims"]:
        yield {"fault": "preempt", "after": None, "hour": option["closes"], "zone": option["zone"], "model": "SPOT"}


def _closed(zone: str, when: Mapping[str, Any]) -> Iterator[Row]:
    """Yield what makes a zone full: spot is refused, and a queued request is granted when the zone opens."""
    yield {"fault": "stockout", "zone": zone, "model": "SPOT", **when}
    yield {"fault": "no-grant", "zone": zone, **when}


def _ignored_deletion(option: Mapping[str, Any]) -> Iterator[Row]:
    """Accept a deletion while PROVISIONING without effect. Its operation comes to `outcome`: running, done, failed.

    `takes_effect`: the deletion happens after all, once the slice is ACTIVE.
    """
    yield {"fault": "deletion-ignored", **{key: option[key] for key in ("zone", "outcome", "takes_effect")}}


HABITS: Mapping[str, Habit] = {
    "early-preemption": Habit(options={"after": 300.0}, rows=_early_preemption),
    "internal-error": Habit(options={"model": "*"}, rows=_internal_error),
    "common-reopening": Habit(options={"after": 3600.0}, rows=_common_reopening),
    "night-capacity": Habit(options={"opens": 22.0, "closes": 6.0, "reclaims": True}, rows=_night_capacity),
    "ignored-deletion": Habit(options={"outcome": "running", "takes_effect": False}, rows=_ignored_deletion),
}
