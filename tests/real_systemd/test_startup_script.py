"""The real startup script, the real systemd, the real docker client: boot, change, kill -9, and a run by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from node.boots import script
from node.containers import container

from real_systemd.machine import Machine, Unavailable, booted

pytestmark = pytest.mark.long


class Boot(Protocol):
    def __call__(self, *, boot_seconds: float = 0.0) -> Machine: ...


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[Boot]:
    """A machine whose startup script is under way; skipped, with the reason, where this system cannot have one."""
    with ExitStack() as stack:

        def begin(*, boot_seconds: float = 0.0) -> Machine:
            first = script(container(name="first"), spec="spec-1")
            values = {"startup-script": first, "tpudeploy-spec": "spec-1", "tpudeploy-change": "1"}
            try:
                machine = stack.enter_context(booted(tmp_path, boot_seconds=boot_seconds, **values))
            except Unavailable as cause:
                pytest.skip(f"no machine with a systemd of its own: {cause}")
            assert machine.run("systemctl", "start", "--no-block", "google-startup-scripts").returncode == 0
            return machine

        yield begin


def change(machine: Machine, name: str, number: str) -> None:
    new = script(container(name=name), spec=f"spec-{number}")
    machine.set_metadata(**{"startup-script": new, "tpudeploy-spec": f"spec-{number}", "tpudeploy-change": number})


def test_a_boot_serves_with_a_handful_of_reports_of_which_none_is_lost(boot: Boot) -> None:
    began = time.time()
    machine = boot()
    report = machine.waits_for("serving", spec="spec-1", change="1")
    assert "Hello." in report["answer"]
    assert machine.docker() == ["pull docker.io/vllm/vllm-tpu", "create first", "start first"]
    machine.waits_until_quiet()
    attributes = machine.events("attribute")
    assert len(attributes) <= 10 * max(1.0, (time.time() - began) / 60)
    assert not [event for event in attributes if event["lost"]]
    assert [report["phase"] for report in machine.reports()[-2:]] == ["serving", "serving"]
    assert machine.run("systemctl", "is-active", "google-startup-scripts").stdout == "inactive\n"
    assert machine.run("systemctl", "is-active", "tpudeploy-watcher").stdout == "active\n"


def test_a_change_while_it_serves_is_taken_over_by_the_watcher(boot: Boot) -> None:
    machine = boot()
    machine.waits_for("serving", change="1")
    change(machine, "second", "2")
    machine.waits_for("serving", spec="spec-2", change="2")
    assert machine.docker()[-3:] == ["remove first", "create second", "start second"]


def test_a_change_during_a_boot_takes_the_place_of_the_boot(boot: Boot) -> None:
    machine = boot(boot_seconds=300)
    machine.waits_for("booted", change="1")
    while "start first" not in machine.docker():
        time.sleep(0.05)
    machine.set_metadata(boot_seconds="0")
    change(machine, "second", "2")
    machine.waits_for("serving", spec="spec-2", change="2")
    assert machine.docker().count("start first") == 1
    assert machine.docker()[-3:] == ["remove first", "create second", "start second"]


def test_both_units_are_started_again_after_kill_9(boot: Boot) -> None:
    machine = boot(boot_seconds=300)
    machine.waits_for("booted", change="1")
    while "start first" not in machine.docker():
        time.sleep(0.05)
    machine.kill("tpudeploy-work")
    machine.kill("tpudeploy-watcher")
    machine.set_metadata(boot_seconds="0")
    machine.waits_for("serving", spec="spec-1", change="1")
    assert machine.docker().count("start first") == 2
    change(machine, "second", "2")
    machine.waits_for("serving", spec="spec-2", change="2")


OWN_REQUEST = {
    "Cloud TPU": "https://tpu.googleapis.com/v2/projects/p/locations/us-east5-a/nodes/gemma",
    "Compute Engine": "https://compute.googleapis.com/compute/v1/projects/p/zones/us-east5-a/instances/gemma",
}
TOKEN = '{"access_token": "of-the-machine"}'


@pytest.mark.parametrize("api", OWN_REQUEST)
def test_at_its_end_the_machine_deletes_its_own_request_though_its_watcher_was_killed(boot: Boot, api: str) -> None:
    machine = boot()
    machine.waits_for("serving", change="1")
    machine.kill("tpudeploy-watcher")
    machine.set_metadata(token=TOKEN, tpudeploy_end=f"{int(time.time())} {OWN_REQUEST[api]} lifecycle.end: 24h")
    deletion = machine.waits_for_event("delete")
    assert deletion["url"].partition("?")[0] == OWN_REQUEST[api]
    assert deletion["authorization"] == "Bearer of-the-machine"


def test_a_stream_of_requests_keeps_a_machine_that_goes_once_it_is_idle(boot: Boot) -> None:
    machine = boot()
    machine.waits_for("serving", change="1")
    machine.waits_until_quiet()
    idle = f"~3 {OWN_REQUEST['Cloud TPU']} lifecycle.idle: 3s"
    machine.set_metadata(token=TOKEN, requests="1", tpudeploy_end=idle)
    for number in range(2, 30):
        time.sleep(0.5)
        machine.set_metadata(requests=str(number))
    assert machine.events("delete") == []
    assert machine.waits_for_event("delete")["url"] == OWN_REQUEST["Cloud TPU"]


def test_run_by_hand_it_leaves_alone_what_works_and_brings_up_what_does_not(boot: Boot) -> None:
    machine = boot(boot_seconds=5)
    machine.waits_for("booted", change="1")
    assert "the unit tpudeploy-work is bringing up the server already" in machine.run_by_hand()
    machine.waits_for("serving", change="1")
    machine.waits_until_quiet()
    before = machine.docker()
    assert "the container first of this script runs already, and is left alone" in machine.run_by_hand()
    assert machine.docker() == before
    assert machine.run("docker", "rm", "-f", "first").returncode == 0
    assert "the unit tpudeploy-work brings it up again" in machine.run_by_hand()
    assert machine.docker()[-2:] == ["create first", "start first"]
