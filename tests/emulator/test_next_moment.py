"""When a cloud changes next without a caller: who jumps from moment to moment misses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import pytest
from emulator.cloud_world import World
from emulator.compute_world import ComputeWorld, world
from googleapiclient.errors import HttpError

SLOW = {"queued": 10, "waiting": 20, "provisioning": 120, "node_ready": 20, "boot": 100, "suspending": 30}
MOMENT = 1e-3
OUTAGE = {"fault": "unavailable", "method": "queuedResources.list", "zone": "us-east5-a"}


def snapshot(w: ComputeWorld) -> object:
    """What a caller sees of the one slice or instance: its state, whether it is listed, and its machine's phase."""
    calls = w.alpha.projects().locations().queuedResources()
    names = [row["name"] for row in calls.list(parent="projects/p/locations/-").execute().get("queuedResources", ())]
    logs = [
        host.log().partition("phase=")[2].partition("\n")[0]
        for hosts in w.emulator._cloud.hosts.values()
        for host in hosts
    ]
    return w.state(), w.status(), names, logs, is_refused(w)


def is_refused(w: World) -> bool:
    """Whether a look at another zone is refused."""
    try:
        w.alpha.projects().locations().queuedResources().list(parent="projects/p/locations/us-east5-a").execute()
    except HttpError:
        return True
    return False


def jump(w: World) -> bool:
    """Let time pass to the next moment; return False if there is none within two hours."""
    seconds = w.emulator.next_moment() - w.clock.now()
    if seconds < 7200:
        w.clock.sleep(seconds + MOMENT)
    return seconds < 7200


@pytest.mark.parametrize(
    ("trouble", "api"),
    [
        pytest.param({}, "queued-resource", id="a slice comes up and boots"),
        pytest.param({}, "instance", id="an instance comes up and boots"),
        pytest.param({"fault": "hidden", "seconds": 45}, "queued-resource", id="it is not visible at first"),
        pytest.param({"fault": "unlisted", "seconds": 45}, "queued-resource", id="it is not listed at first"),
        pytest.param(
            {"fault": "hidden-after-operation", "seconds": 7}, "queued-resource", id="it is visible after its operation"
        ),
        pytest.param({"fault": "preempt", "after": 50}, "queued-resource", id="it is preempted while it boots"),
        pytest.param({**OUTAGE, "since": 33, "until": 77}, "queued-resource", id="a zone fails for a while"),
    ],
)
def test_between_two_moments_nothing_changes(trouble: Mapping[str, Any], api: str) -> None:
    with world(*([trouble] if trouble else []), timings=SLOW) as w:
        assert w.emulator.next_moment() == inf or trouble
        w.create() if api == "queued-resource" else w.insert()
        states = [snapshot(w)]
        while True:
            seconds = w.emulator.next_moment() - w.clock.now()
            if seconds > 7200:
                break
            for _ in range(3):
                w.clock.sleep((seconds - MOMENT) / 3)
                assert snapshot(w) == states[-1], (seconds, states)
            assert jump(w)
            states.append(snapshot(w))
        w.clock.sleep(7000)
        assert snapshot(w) == states[-1]
        assert len(set(map(str, states))) > 3


def test_rows_of_trouble_by_the_hour_begin_and_end_at_their_moments() -> None:
    with world({**OUTAGE, "hours": "6-22"}) as w:
        hours = []
        for _ in range(4):
            w.clock.sleep(w.emulator.next_moment() - w.clock.now() + MOMENT)
            hours.append((w.clock.now() // 3600 % 24, is_refused(w)))
        assert sorted(set(hours)) == [(6, True), (22, False)]
        assert len(hours) == 4
