"""Trouble, as a scenario scripts it and as Google's clients meet it: each fault, its layer, its words."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import requests
from emulator.cloud_world import ZONE, qr, refused, world
from google.api_core import exceptions
from google.cloud import tpu_v2
from googleapiclient.errors import HttpError
from real_time import DEADLINE

from tpudeploy import emulator
from tpudeploy.domain.errors import ScenarioInvalid
from tpudeploy.emulator import VirtualClock, scenario
from tpudeploy.emulator.faults import FAULTS
from tpudeploy.emulator.scenario_file import load_scenario
from tpudeploy.emulator.texts import CAUSES
from tpudeploy.emulator.timings import Timings

AT_ONCE = [
    (
        "quota-zero",
        429,
        "RESOURCE_EXHAUSTED",
        "Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region us-east5.",
    ),
    (
        "quota-exhausted",
        429,
        "RESOURCE_EXHAUSTED",
        "Quota 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' exhausted. Limit 0 in region us-east5",
    ),
    ("rate-limit", 429, "RESOURCE_EXHAUSTED", "Maximum number of CreateNode requests per minute"),
    (
        "zone-unsupported",
        400,
        "INVALID_ARGUMENT",
        'Cloud TPU received a bad request. The requested zone "us-east5-b" is not supported. [EID: 0x',
    ),
    (
        "type-unsupported",
        400,
        "INVALID_ARGUMENT",
        'could not be found in the zonal accelerator configurations for "us-east5-b".; the accelerator v6e-8 was not found in zone us-east5-b [EID: 0x',
    ),
    ("too-big", 400, "INVALID_ARGUMENT", "Request size can be at most"),
    ("iam-denied", 403, "PERMISSION_DENIED", "Permission 'tpu.queuedResources.create' denied"),
    ("api-off", 403, "PERMISSION_DENIED", "Cloud TPU API has not been used in project p before or it is disabled."),
    ("location-denied", 403, "PERMISSION_DENIED", "Location us-east5-b is not found or access is unauthorized."),
    ("no-subnetwork", 400, "INVALID_ARGUMENT", "No default subnetwork was found"),
    ("unavailable", 503, "UNAVAILABLE", "currently unavailable"),
    ("backend-error", 500, "INTERNAL", "Internal error"),
]
IN_THE_OPERATION = [
    (
        "stockout",
        8,
        'There is no more capacity in the zone "us-east5-b"; you can try in another zone where Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0x',
    ),
    ("insufficient-capacity", 8, "Insufficient capacity"),
    (
        "reserved-stockout",
        8,
        "Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x",
    ),
    (
        "model-unsupported",
        3,
        'SPOT provisioning model is not supported for accelerator type "v6e-8" in location "us-east5-b"',
    ),
    ("no-queueing", 3, "Queueing is not supported for accelerator type v6e-8"),
    (
        "queue-closed",
        7,
        "User does not have permission to submit requests into this queue for accelerator type v6e-8 in location us-east5-b",
    ),
    ("reservation-missing", 5, "Reservation not found"),
]


@pytest.mark.parametrize(("fault", "http", "status", "text"), AT_ONCE)
def test_a_request_refused_at_once_leaves_nothing_behind(fault: str, http: int, status: str, text: str) -> None:
    with world({"fault": fault, "times": 1}) as w:
        with refused(http, status, text):
            w.create()
        assert w.emulator.live() == {}
        w.create()
        w.grow()


@pytest.mark.parametrize(("fault", "code", "text"), IN_THE_OPERATION)
def test_a_request_refused_in_its_operation_leaves_nothing_behind(fault: str, code: int, text: str) -> None:
    with world({"fault": fault}) as w:
        operation = w.create()
        assert w.state() == "CREATING"
        w.clock.sleep(1)
        error = w.operation(operation)["error"]
        assert error["code"] == code
        assert text in error["message"]
        assert w.emulator.live() == {}


def test_every_refusal_can_also_show_as_a_failed_resource() -> None:
    for fault in (name for name, row in FAULTS.items() if row.kind == "refusal" and row.method != "*"):
        with world({"fault": fault, "layer": "L3"}) as w:
            w.create()
            w.grow(until="FAILED")
            assert w.get()["state"]["failedData"]["error"]["code"] == CAUSES[fault].code, fault
            w.clock.sleep(100_000)
            assert w.state() == "FAILED"
            w.delete()
            w.grow(until="ABSENT")


def test_code_13_comes_after_provisioning_and_suspending() -> None:
    with world({"fault": "internal-error"}) as w:
        w.create()
        for state in ("PROVISIONING", "SUSPENDING", "FAILED"):
            w.grow(until=state)
        assert w.get()["state"]["failedData"]["error"] == {"code": 13, "message": "an internal error has occurred"}
        assert w.emulator.billed() == ()


def test_a_quota_refusal_carries_its_details() -> None:
    with world({"fault": "quota-exhausted"}) as w, pytest.raises(HttpError) as caught:
        w.create()
    assert caught.value.error_details[0]["@type"] == "type.googleapis.com/google.rpc.QuotaFailure"


def test_the_typed_client_raises_its_own_classes() -> None:
    with world({"fault": "unavailable", "method": "nodes.get"}, {"fault": "iam-denied", "method": "nodes.list"}) as w:
        with pytest.raises(exceptions.ServiceUnavailable):
            w.node()
        with pytest.raises(exceptions.Forbidden):
            list(w.typed.list_nodes(parent=f"projects/p/locations/{ZONE}", timeout=DEADLINE))


def test_trouble_strikes_the_named_zone_and_attempt_alone() -> None:
    with world({"fault": "stockout", "zone": "us-east5-b", "attempt": "2-3"}) as w:
        ends = []
        for attempt in range(1, 5):
            operation = w.create(f"a{attempt}")
            w.clock.sleep(1)
            ends.append("error" in w.operation(operation))
        assert ends == [False, True, True, False]
        elsewhere = w.create("a1", zone="us-east5-a")
        w.clock.sleep(1)
        assert "error" not in w.operation(elsewhere)


def test_calls_are_counted_across_zones_where_a_row_says_call() -> None:
    with world({"fault": "quota-zero", "call": 2}) as w:
        w.create("a", zone="us-east5-a")
        with refused(429, "RESOURCE_EXHAUSTED"):
            w.create("b", zone="us-east5-b")


def test_trouble_can_be_bound_to_a_name_a_type_or_a_provisioning_model() -> None:
    rows = [
        {"fault": "quota-zero", "name": "x-*"},
        {"fault": "too-big", "type": "v6e-16"},
        {"fault": "no-subnetwork", "model": "FLEX_START"},
    ]
    with world(*rows) as w:
        w.create("fine")
        with refused(429, "RESOURCE_EXHAUSTED"):
            w.create("x-1")
        with refused(400, "INVALID_ARGUMENT", "Request size"):
            w.create("b", node={"acceleratorType": "v6e-16"})
        with refused(400, "INVALID_ARGUMENT", "subnetwork"):
            w.create("c", provisioningModel="FLEX_START")


def test_refusals_scripted_once_each_come_one_after_the_other() -> None:
    rows = [{"fault": "quota-zero", "times": 1}, {"fault": "too-big", "times": 1}, {"fault": "quota-zero", "times": 1}]
    with world(*rows) as w:
        for http, status in ((429, "RESOURCE_EXHAUSTED"), (400, "INVALID_ARGUMENT"), (429, "RESOURCE_EXHAUSTED")):
            with refused(http, status):
                w.create()
        w.create()


def test_a_refusal_can_be_lost_too() -> None:
    with world({"fault": "quota-zero"}, {"fault": "lost-reply"}) as w:
        with pytest.raises(ConnectionResetError):
            w.create()
        assert [r.verdict for r in w.emulator.requests] == ["429 RESOURCE_EXHAUSTED reset"]
        assert w.emulator.live() == {}


def test_chance_depends_on_the_seed_alone() -> None:
    def ends(seed: int) -> list[bool]:
        with world({"fault": "hidden", "chance": 0.5}, seed=seed) as w:
            for index in range(12):
                w.create(f"a{index}")
            return [w.state(f"a{index}") == "ABSENT" for index in range(12)]

    assert ends(1) == ends(1)
    assert len({tuple(ends(seed)) for seed in range(4)}) > 1
    assert any(ends(1))
    assert not all(ends(1))


def test_trouble_can_be_added_while_it_runs() -> None:
    with world() as w:
        w.create("a")
        w.emulator.script({"fault": "quota-zero"})
        with refused(429, "RESOURCE_EXHAUSTED"):
            w.create("b")


def test_a_lost_reply_means_the_slice_exists_and_the_caller_does_not_know() -> None:
    with world({"fault": "lost-reply"}) as w:
        with pytest.raises(ConnectionResetError):
            w.create()
        assert w.state() == "CREATING"
        assert [r.verdict for r in w.emulator.requests if r.method == "POST"] == ["200 reset"]
        w.grow()


def test_a_politely_lost_reply_makes_httplib2_send_the_request_again() -> None:
    with world({"fault": "lost-reply", "close": True, "times": 1}) as w:
        with refused(409, "ALREADY_EXISTS"):
            w.create()
        assert [r.verdict for r in w.emulator.requests] == ["200 close", "409 ALREADY_EXISTS"]
        assert list(w.emulator.live()[ZONE]) == ["a"]


def test_a_lost_reply_to_the_typed_client_is_a_requests_error() -> None:
    with world({"fault": "lost-reply", "method": "nodes.get"}) as w:
        w.create()
        w.grow()
        with pytest.raises(requests.exceptions.ConnectionError):
            w.node()


def test_a_lost_reply_to_a_delete_still_deletes() -> None:
    with world({"fault": "lost-reply", "method": "queuedResources.delete"}) as w:
        w.create()
        w.grow()
        with pytest.raises(ConnectionResetError):
            w.delete(force=True)
        w.grow(until="ABSENT")


def test_a_refused_connection_carries_nothing_out() -> None:
    with world({"fault": "connection-refused", "method": "queuedResources.create", "times": 1}) as w:
        with pytest.raises(ConnectionResetError):
            w.create()
        assert w.emulator.live() == {}
        w.create()


def test_an_unlisted_slice_and_its_node_can_be_had_by_name_alone() -> None:
    with world({"fault": "unlisted", "seconds": 70}) as w:
        calls = w.alpha.projects().locations()
        listed, where = (calls.queuedResources(), calls.nodes()), f"projects/p/locations/{ZONE}"
        w.create()
        w.grow()
        assert w.node().name.endswith("/nodes/a")
        assert [calls.list(parent=where).execute() for calls in listed] == [{"queuedResources": []}, {"nodes": []}]
        w.clock.sleep(70)
        assert [len(next(iter(calls.list(parent=where).execute().values()))) for calls in listed] == [1, 1]


def test_a_hidden_slice_exists_but_every_look_says_404() -> None:
    with world({"fault": "hidden", "seconds": 70}) as w:
        w.create()
        assert w.state() == "ABSENT"
        assert w.alpha.projects().locations().queuedResources().list(
            parent=f"projects/p/locations/{ZONE}"
        ).execute() == {"queuedResources": []}
        assert w.emulator.live() == {ZONE: {"a": "CREATING"}}
        w.clock.sleep(69)
        assert w.state() == "ABSENT"
        with refused(409, "ALREADY_EXISTS"):
            w.create()
        w.clock.sleep(1)
        assert w.state() == "ACTIVE"


def test_a_create_may_say_409_for_what_it_just_made() -> None:
    with world({"fault": "already-exists"}) as w:
        with refused(409, "ALREADY_EXISTS", qr()):
            w.create()
        assert w.state() == "CREATING"


def test_a_slow_operation_ends_late_while_the_slice_moves_on() -> None:
    with world({"fault": "slow-operation", "seconds": 500}) as w:
        operation = w.create()
        w.grow()
        assert not w.operation(operation).get("done")
        w.clock.sleep(500)
        assert w.operation(operation)["done"]


def test_a_slice_can_stay_invisible_for_a_while_after_its_operation() -> None:
    with world({"fault": "hidden-after-operation", "seconds": 60}) as w:
        operation = w.create()
        while not w.operation(operation).get("done"):
            assert w.state() == "ABSENT"
            w.clock.sleep(1)
        w.clock.sleep(58)
        assert w.state() == "ABSENT"
        assert w.emulator.live()[ZONE]
        w.clock.sleep(2)
        assert w.state() != "ABSENT"


def test_a_create_operation_can_stay_open_for_ever_while_the_slice_lives_and_goes() -> None:
    with world({"fault": "operation-never-ends"}) as w:
        operation = w.create()
        w.grow()
        w.delete(force=True)
        w.grow(until="ABSENT")
        assert not w.operation(operation).get("done")


def test_a_deletion_can_begin_and_never_end() -> None:
    with world({"fault": "deletion-hangs"}) as w:
        w.create()
        w.grow()
        operation = w.delete(force=True)
        w.clock.sleep(86_400)
        assert w.state() == "DELETING"
        assert not w.operation(operation).get("done")


def test_a_slow_call_takes_time_of_the_clock() -> None:
    with world({"fault": "slow", "method": "queuedResources.get", "seconds": 30, "times": 1}) as w:
        w.create()
        before = w.clock.now()
        w.get()
        assert w.clock.now() == before + 30


def test_a_provisioning_loop_shows_and_hides_its_node_until_it_is_given_up() -> None:
    with world({"fault": "provisioning-loop", "every": 60, "for": 600}) as w:
        w.create()
        w.grow(until="PROVISIONING")
        states = set()
        for _ in range(8):
            w.clock.sleep(60)
            assert w.state() == "PROVISIONING"
            try:
                states.add(w.node().state.name)
            except exceptions.NotFound:
                states.add("absent")
        assert states == {"CREATING", "absent"}
        w.grow(until="SUSPENDED")


def test_a_slice_can_wait_for_ever() -> None:
    with world({"fault": "wait-for-ever"}) as w:
        w.create()
        w.clock.sleep(10_000_000)
        assert w.state() == "WAITING_FOR_RESOURCES"


def test_a_node_can_vanish_while_its_slice_says_active() -> None:
    with world({"fault": "vanish", "after": 10}) as w:
        w.create()
        w.grow()
        w.clock.sleep(10)
        assert w.state() == "ACTIVE"
        with pytest.raises(exceptions.NotFound):
            w.node()
        w.delete()
        w.grow(until="ABSENT")


def test_a_run_can_end_before_it_was_to() -> None:
    with world({"fault": "flex-end", "after": 50}) as w:
        w.create(provisioningModel="FLEX_START", runDuration={"maxRunDuration": "3600s"})
        w.grow()
        w.clock.sleep(50)
        assert w.state() == "SUSPENDING"


def test_a_node_can_stay_unhealthy() -> None:
    with world({"fault": "never-healthy"}) as w:
        w.create()
        w.grow()
        w.clock.sleep(10_000)
        assert w.node().health == tpu_v2.Node.Health.TIMEOUT


def test_a_delete_can_be_taken_and_fail() -> None:
    with world({"fault": "delete-refused", "times": 1}) as w:
        w.create()
        w.grow()
        operation = w.delete(force=True)
        w.clock.sleep(2)
        assert w.operation(operation)["error"]["code"] == 9
        assert w.state() == "ACTIVE"
        w.delete(force=True)
        w.grow(until="ABSENT")


def test_a_list_over_all_zones_names_the_ones_that_did_not_answer() -> None:
    with world({"fault": "unreachable", "zones": "us-east5-*"}) as w:
        w.create("a", "us-east5-b")
        w.create("b", "europe-west4-a")
        w.grow("b", "europe-west4-a")
        everywhere = "projects/p/locations/-"
        listed = w.alpha.projects().locations().queuedResources().list(parent=everywhere).execute()
        assert [one["name"] for one in listed["queuedResources"]] == [qr("b", "europe-west4-a")]
        silent = {f"projects/p/locations/us-east5-{letter}" for letter in "abc"}
        assert set(listed["unreachable"]) == silent
        (page,) = w.typed.list_nodes(parent=everywhere, timeout=DEADLINE).pages
        assert [node.name for node in page.nodes] == ["projects/p/locations/europe-west4-a/nodes/b"]
        assert set(page.unreachable) == silent


def test_a_list_of_one_zone_says_so_too_where_it_does_not_answer() -> None:
    with world({"fault": "unreachable", "zones": "us-east5-b"}) as w:
        w.create("a", "us-east5-b")
        lists = w.alpha.projects().locations().queuedResources()
        silent = lists.list(parent="projects/p/locations/us-east5-b").execute()
        assert (silent["queuedResources"], silent["unreachable"]) == ([], ["projects/p/locations/us-east5-b"])
        assert "unreachable" not in lists.list(parent="projects/p/locations/us-east5-a").execute()


def test_a_node_can_outlive_its_queued_resource_and_holds_quota_until_it_is_deleted() -> None:
    limit = [{"class": "preemptible", "region": "us-east5", "limit": 8}]
    with world({"fault": "orphan", "times": 1}, quota=limit) as w:
        w.create()
        w.grow()
        w.delete(force=True)
        w.grow(until="ABSENT")
        assert w.node().state == tpu_v2.Node.State.READY
        assert w.node().queued_resource == qr()
        assert w.emulator.billed() == ("a",)
        with refused(429, "RESOURCE_EXHAUSTED"):
            w.create("b")
        w.typed.delete_node(name=f"projects/p/locations/{ZONE}/nodes/a", timeout=DEADLINE)
        w.clock.sleep(10)
        with pytest.raises(exceptions.NotFound):
            w.node()
        w.create("b")


def test_one_slice_can_have_its_own_timings() -> None:
    with world({"fault": "timings", "provisioning": 1000, "attempt": 1}) as w:
        w.create("slow")
        w.create("quick")
        w.grow("quick")
        assert w.state("slow") == "PROVISIONING"


def test_a_boot_can_fail_hang_or_say_nothing() -> None:
    rows: list[dict[str, Any]] = [
        {"fault": "boot", "name": "crash", "crash": "RuntimeError: out of HBM"},
        {"fault": "boot", "name": "hang", "hang": True},
        {"fault": "boot", "name": "mute", "guest_attributes": False},
    ]
    with world(*rows) as w:
        for name in ("crash", "hang", "mute", "fine"):
            w.create(name)
            w.grow(name)
        request = {"query_path": "tpudeploy/"}
        output = {}
        for name in ("crash", "hang", "mute", "fine"):
            request["name"] = f"projects/p/locations/{ZONE}/nodes/{name}"
            items = (
                w.typed.get_guest_attributes(request=request, timeout=DEADLINE).guest_attributes[0].query_value.items
            )
            output[name] = {key: value for item in items for key, value in json.loads(item.value).items()}
        assert (output["crash"]["phase"], output["crash"]["detail"]) == ("failed", "RuntimeError: out of HBM")
        assert output["hang"]["phase"] == "starting"
        assert output["mute"] == {}
        assert output["fine"]["phase"] == "serving"


def test_error_ids_are_the_same_for_the_same_scenario() -> None:
    def message() -> str:
        with world({"fault": "stockout"}) as w:
            operation = w.create()
            w.clock.sleep(1)
            return str(w.operation(operation)["error"]["message"])

    assert message() == message()
    assert re.search(r"\[EID: 0x[0-9a-f]{16}\]$", message())


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        ({"troubel": []}, "did you mean `trouble`?"),
        ({"trouble": [{"fault": "stokout"}]}, "did you mean `stockout`?"),
        ({"trouble": [{"fault": "preempt", "seconds": 3}]}, "`preempt` takes no `seconds`"),
        ({"trouble": [{"fault": "stockout", "attempt": "x"}]}, "invalid literal"),
        ({"nodes": "imaginary"}, "`nodes` is real or simulated"),
        ({"timings": {"nap": 3}}, "nap"),
        ({"quota": [{"class": "gold", "zone": "*", "limit": 3}]}, "a quota row is"),
        ({"trouble": 3}, "not iterable"),
    ],
)
def test_a_scenario_that_cannot_be_played_says_why(scenario: dict[str, object], text: str) -> None:
    with (
        pytest.raises(ScenarioInvalid, match=re.escape(text)),
        emulator.running(clock=VirtualClock(), scenario=scenario),
    ):
        raise AssertionError("it ran")


def test_the_documented_scenario_can_be_played(tmp_path: Path) -> None:
    example = textwrap.dedent(str(scenario.__doc__).split("\n\n")[1])
    file = tmp_path / "scenario.yaml"
    file.write_text(example)
    played = load_scenario(file, timings=Timings())
    assert played.simulated
    scripted, habits = ["stockout", "stockout", "lost-reply", "unavailable", "preempt"], ["timings", "preempt"]
    assert [row.fault for row in played.trouble] == scripted + habits


@pytest.mark.parametrize("name", ["scenario.yaml", "scenario.json"])
def test_a_scenario_is_read_from_yaml_or_json(tmp_path: Path, name: str) -> None:
    text = {
        "scenario.yaml": "nodes: simulated\ntimings: {queued: 3}\n",
        "scenario.json": json.dumps({"nodes": "simulated"}),
    }
    file = tmp_path / name
    file.write_text(text[name])
    with emulator.running(clock=VirtualClock(), scenario=file) as running:
        assert running.live() == {}


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "\t- x"])
def test_a_file_that_is_no_scenario_says_so(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioInvalid, match=r"scenario\.yaml"), emulator.running(scenario=file):
        raise AssertionError("it ran")
