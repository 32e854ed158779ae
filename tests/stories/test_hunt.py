"""A hunt of hours, as it is told: everything to programs, to people what is new, and the rest in a line now and then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from desk import PROFILE, Desk, Open

ZONES = ("us-east5-a", "us-east5-b", "europe-west4-a", "asia-northeast1-b")
MANY = PROFILE.replace("[us-east5-a, us-east5-b, europe-west4-a]", f"[{', '.join(ZONES)}]").replace(
    "[spot]\n  max_parallel_requests: 1", "[flex-start, spot]\n  max_run_duration: 12h\n  max_parallel_requests: 8"
)
HOURS = 3 * 3600
# Every queue stands still until it lapses, and spot is full; then a window opens in one zone.
FULL = (
    {"fault": "wait-for-ever", "model": "FLEX_START"},
    {"fault": "quota-zero", "model": "SPOT", "zone": "europe-west4-a"},
    {"fault": "stockout", "model": "SPOT", "zone": "us-east5-b", "layer": "L3", "times": 30},
    {"fault": "stockout", "model": "SPOT", "times": 100},
)


def test_hours_of_refusals_are_told_once_a_place_and_then_summed_up(desk: Open) -> None:
    at = desk(trouble=FULL)
    began = at.clock.now()
    applied = at.run("apply", "-auto-approve", at.write(MANY))
    assert applied.code == 0, applied.all
    assert at.clock.now() - began > HOURS
    lines = applied.err.splitlines()
    refused = Counter(line.split("Refused in ")[1].split(" (")[0] for line in lines if "Refused in " in line)
    assert set(refused) == {f"{zone}, spot" for zone in ZONES} | {f"{zone}, flex-start" for zone in ZONES}
    assert set(refused.values()) == {1}
    assert "Still waiting: 4 queued; refused in 4 places (3 stockout, 1 quota-none)" in applied.err
    assert 15 < applied.err.count("Still waiting") < 30
    assert applied.err.count("In the queue of us-east5-b, spot") == 1
    assert len(lines) < 110
    assert sum("Serving at" in line for line in lines) == 1


def test_a_place_that_gave_something_is_told_of_anew(desk: Open) -> None:
    refusals = [{"fault": "stockout", "attempt": 1}, {"fault": "stockout", "attempt": 3}]
    at = desk(trouble=[*refusals, {"fault": "preempt", "attempt": 2, "after": 900}])
    began = at.clock.now()

    def stop() -> None:
        if at.clock.now() > began + 2 * 3600:
            raise KeyboardInterrupt

    at.clock.on_advance.append(stop)
    watched = at.run("apply", "-auto-approve", "-watch", at.write(PROFILE.replace(", us-east5-b, europe-west4-a", "")))
    at.clock.on_advance.remove(stop)
    assert len(at.asked()) == 4
    assert watched.err.count("Refused in us-east5-a") == 2
    assert watched.err.count("Asking for") == 2
    assert watched.err.count("Serving at") == 2


def test_programs_hear_of_every_request_and_every_state(desk: Open) -> None:
    at = desk(trouble=FULL)
    applied = at.run("apply", "-auto-approve", "-json", at.write(MANY))
    assert applied.code == 0, applied.all
    told = _events(applied.out)
    kinds = Counter(event["type"] for event in told)
    assert kinds["requested"] == len(at.asked())
    assert kinds["not_granted"] > 100
    last: Mapping[str, Any] = {}
    for event in told:
        if event["type"] != "outlook":
            continue
        assert event["places"] != last.get("places"), "sent where nothing changed"
        last = event
        assert {place["zone"] for place in event["places"]} <= set(ZONES)
    assert [(p["zone"], p["state"]) for p in last["places"]] == [(_served(at), "up")]


def _events(out: str) -> Sequence[Mapping[str, Any]]:
    return [tree for tree in map(json.loads, out.splitlines()) if tree.get("v")]


def _served(at: Desk) -> str:
    (zone,) = (zone for zone, slices in at.emulator.live().items() if slices)
    return zone
