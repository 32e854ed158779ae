"""A hunt of hours, as it is told: everything to programs, to people what is new, and the rest in a line now and then."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

ZONES = ("us-east5-a", "us-east5-b", "europe-west4-a", "asia-northeast1-b")
MANY = PROFILE.replace("[us-east5-a, us-east5-b, europe-west4-a]", f"[{', '.join(ZONES)}]").replace(
    "[spot]\n  max_parallel_requests: 1", "[flex-start, spot]\n  max_run_duration: 12h\n  max_parallel_requests: 8"
)
HOURS = 3 * 3600
# Every queue stands still until it lapses, and spot is full; then a window opens in one zone.
FULL = (
    {"fault": "wait-for-ever", "model": "FLEX_START"},
    {"fault": "quota-zero", "model": "SPOT", "zone": "europe-west4-a"},
    {"fault": "stockout", "model": "SPOT", "zone": "us-east5-b", "layer": "L3", "times": 8},
    {"fault": "stockout", "model": "SPOT", "times": 16},
)


@pytest.mark.long
def test_hours_of_refusals_are_told_once_a_place_and_then_summed_up(cli: Open) -> None:
    at = cli(trouble=FULL)
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
    assert applied.err.count("Queued in us-east5-b, spot") == 1
    assert len(lines) < 110
    assert sum("Serving at" in line for line in lines) == 1


def test_a_place_that_gave_something_is_told_of_anew(cli: Open) -> None:
    refusals = [{"fault": "stockout", "attempt": 1}, {"fault": "stockout", "attempt": 3}]
    at = cli(trouble=[*refusals, {"fault": "preempt", "attempt": 2, "after": 900}])
    began = at.clock.now()

    def stop() -> None:
        if at.clock.now() > began + 2 * 3600:
            raise KeyboardInterrupt

    at.clock.on_advance.append(stop)
    watched = at.run("apply", "-auto-approve", "-watch", at.write(PROFILE.replace(", us-east5-b, europe-west4-a", "")))
    at.clock.on_advance.remove(stop)
    assert len(at.requested_zones()) == 4
    assert watched.err.count("Refused in us-east5-a") == 2
    assert watched.err.count("Requesting") == 2
    assert watched.err.count("Serving at") == 2


def test_programs_hear_of_every_request_and_every_state(cli: Open) -> None:
    at = cli(trouble=FULL)
    applied = at.run("apply", "-auto-approve", "-json", at.write(MANY))
    assert applied.code == 0, applied.all
    answer = _events(applied.out)
    kinds = Counter(event["type"] for event in answer)
    assert kinds["requested"] == len(at.requested_zones())
    assert kinds["not_granted"] > 24
    last: Mapping[str, Any] = {}
    for event in answer:
        if event["type"] != "outlook":
            continue
        assert event["places"] != last.get("places"), "sent where nothing changed"
        last = event
        assert {place["zone"] for place in event["places"]} <= set(ZONES)
    assert [(p["zone"], p["state"]) for p in last["places"]] == [(_served(at), "up")]


def test_what_a_run_leaves_behind_is_named_with_its_end_and_the_most_it_may_cost(cli: Open) -> None:
    models = "[spot, flex-start]\n  max_run_duration: 12h"
    two = PROFILE.replace("us-east5-b, europe-west4-a", "us-central1-a").replace("[spot]", models)
    at = cli(trouble=[{"fault": "wait-for-ever"}])
    profile = at.write(two.replace("requests: 1", "requests: 3"))
    stopped = at.run("apply", "-auto-approve", "-timeout", "30m", profile)
    assert stopped.code == 12
    names = {place: name for name, place in re.findall(r"(gemma-\S+) \((.*?)\):", stopped.err)}
    assert (
        f"{names['us-east5-a, spot']} (us-east5-a, spot): lapses in 91 min; if granted, $1.40/h, at most $16.84 in its 12h\n"
        in stopped.err
    )
    assert (
        f"{names['us-east5-a, flex-start']} (us-east5-a, flex-start): lapses in 91 min; if granted, $1.35/h, at most $16.20"
        in stopped.err
    )
    (one, *_) = _replicas(at, profile)
    assert (one["lapses_in"], one["usd_per_hour"]) == (pytest.approx(5400, abs=60), None)
    assert (one["usd_per_hour_granted"], one["usd_most"]) == (
        pytest.approx(1.40, abs=0.01),
        pytest.approx(16.84, abs=0.01),
    )
    result = at.run("status", profile).words
    assert (
        "lapses in 1h 30m price nothing yet; if granted, $1.40/h at list price, at most $16.84 until its run ends"
        in result
    )

    at.clock.sleep(5400 + 600)
    late = at.run("apply", "-auto-approve", "-timeout", "1s", profile)
    assert "abandoned, deletion pending" in late.err


def test_what_is_granted_has_its_price_and_no_longer_lapses(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 7200})
    profile = at.write(PROFILE + "health: {timeout: 3h}\n")
    assert at.run("apply", "-auto-approve", "-wait", "accepted", profile).code == 0
    at.clock.sleep(60)
    (one,) = _replicas(at, profile)
    assert (one["cloud"], one["lapses_in"], one["usd_per_hour_granted"]) == (
        "PROVISIONING",
        None,
        pytest.approx(1.40, abs=0.01),
    )
    stopped = at.run("apply", "-timeout", "30m", profile)
    assert "did not serve in time" in stopped.err
    assert "(us-east5-a, spot): $1.40/h\n" in stopped.err
    (one,) = _replicas(at, profile)
    assert (one["usd_per_hour"], one["usd_per_hour_granted"]) == (pytest.approx(1.40, abs=0.01), None)


def test_a_zone_that_does_not_answer_keeps_its_place_in_the_outlook(cli: Open) -> None:
    silent = {"fault": "unavailable", "method": "queuedResources.get", "zone": "us-east5-b", "attempt": "3-9"}
    at = cli(trouble=[{"fault": "timings", "waiting": 600}, silent])
    applied = at.run("apply", "-auto-approve", "-json", at.write(PROFILE.replace("requests: 1", "requests: 2")))
    assert applied.code == 0, applied.all
    outlooks = [e["places"] for e in _events(applied.out) if e["type"] == "outlook"]
    there = {(p["state"], p["why"]) for places in outlooks for p in places if p["zone"] == "us-east5-b"}
    assert ("queued", "us-east5-b does not answer") in there


def _replicas(at: CommandLine, profile: str) -> Sequence[Mapping[str, Any]]:
    tree = json.loads(at.run("status", "-json", profile).out)
    replicas: Sequence[Mapping[str, Any]] = tree["deployments"][0]["replicas"]
    return replicas


def _events(out: str) -> Sequence[Mapping[str, Any]]:
    return [tree for tree in map(json.loads, out.splitlines()) if tree.get("v")]


def _served(at: CommandLine) -> str:
    (zone,) = (zone for zone, slices in at.emulator.live().items() if slices)
    return zone
