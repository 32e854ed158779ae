"""Nodes: patched, stopped and started, and what their guest attributes say."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from emulator.cloud_world import ZONE, World, finished, qr, refused, world
from google.api_core import exceptions
from google.cloud import tpu_v2
from google.protobuf.field_mask_pb2 import FieldMask
from real_time import DEADLINE

NAME = f"projects/p/locations/{ZONE}/nodes/a"


def grown(w: World, **settings: Any) -> World:
    w.create(**settings)
    w.grow()
    return w


def patch(w: World, mask: str, body: dict[str, Any]) -> dict[str, Any]:
    calls = w.alpha.projects().locations().nodes()
    begun: dict[str, Any] = calls.patch(name=NAME, updateMask=mask, body=body).execute()
    w.clock.sleep(5)
    return w.operation(begun)


def report(w: World, path: str = "tpudeploy/") -> dict[str, str]:
    response = w.typed.get_guest_attributes(request={"name": NAME, "query_path": path}, timeout=DEADLINE)
    attributes = {item.key: item.value for item in response.guest_attributes[0].query_value.items}
    return {key: str(value) for key, value in json.loads(attributes["report"]).items()} if attributes else {}


def test_a_patch_replaces_what_its_mask_names_and_nothing_else() -> None:
    with world() as w:
        grown(w, node={"metadata": {"a": "1"}, "labels": {"x": "1"}, "tags": ["t"]})
        ended = patch(w, "metadata,labels", {"metadata": {"b": "2"}, "labels": {"y": "2"}, "tags": ["ignored"]})
        assert ended["response"]["metadata"] == {"b": "2"}
        node = w.node()
        assert (dict(node.metadata), dict(node.labels), list(node.tags)) == ({"b": "2"}, {"y": "2"}, ["t"])


def test_the_typed_client_patches_too_and_a_field_it_leaves_out_is_cleared() -> None:
    with world() as w:
        grown(w, node={"description": "old", "tags": ["t"]})
        begun = w.typed.update_node(
            node=tpu_v2.Node(name=NAME, tags=["u"]),
            update_mask=FieldMask(paths=["description", "tags"]),
            timeout=DEADLINE,
        )
        w.clock.sleep(5)
        assert list(finished(begun).tags) == ["u"]
        assert w.node().description == ""


def test_external_addresses_can_be_switched() -> None:
    with world() as w:
        grown(w)
        patch(w, "networkConfig.enableExternalIps", {"networkConfig": {"enableExternalIps": True}})
        assert w.node().network_endpoints[0].access_config.external_ip


@pytest.mark.parametrize("mask", ["", "runtimeVersion", "metadata,acceleratorType"])
def test_what_cannot_be_changed_in_place_is_refused(mask: str) -> None:
    with world() as w:
        grown(w)
        with refused(400, "INVALID_ARGUMENT", "update_mask"):
            patch(w, mask, {})


def test_a_patch_is_held_against_the_same_rules_as_a_create() -> None:
    with world() as w:
        grown(w)
        with refused(400, "INVALID_ARGUMENT", "at 'node': Cannot find field."):
            patch(w, "metadata", {"metadat": {}})
        with refused(400, "INVALID_ARGUMENT", "at most 262144 bytes"):
            patch(w, "metadata", {"metadata": {"a": "x" * 300_000}})


def test_a_preempted_node_takes_no_patch() -> None:
    with world() as w:
        grown(w)
        w.emulator.preempt("a")
        with refused(400, "FAILED_PRECONDITION", "update is not supported while in state PREEMPTED [EID: 0x"):
            patch(w, "metadata", {"metadata": {}})


def test_a_patch_that_a_preemption_overtakes_fails_in_its_operation() -> None:
    with world() as w:
        grown(w)
        begun = w.alpha.projects().locations().nodes().patch(name=NAME, updateMask="tags", body={}).execute()
        w.emulator.preempt("a")
        w.clock.sleep(10)
        assert w.operation(begun)["error"]["code"] == 9


def test_a_simulated_node_says_how_far_its_boot_has_come() -> None:
    with world(timings={"queued": 1, "waiting": 1, "provisioning": 1, "node_ready": 0, "boot": 100}) as w:
        grown(w, node={"metadata": {"tpudeploy-spec": "f00"}})
        states = []
        for _ in range(11):
            states.append(report(w)["phase"])
            w.clock.sleep(10)
        assert list(dict.fromkeys(states)) == ["booted", "docker", "image", "secrets", "starting", "serving"]
        assert report(w)["spec"] == "f00"
        assert "emulator" in report(w)["answer"]


def test_a_change_in_the_metadata_is_taken_over_by_a_node_that_hears() -> None:
    with world(boot={"boot_seconds": 100}) as w:
        grown(w, node={"metadata": {"tpudeploy-spec": "old", "tpudeploy-change": "0"}})
        w.clock.sleep(100)
        answer = report(w)
        assert {key: answer[key] for key in ("phase", "spec", "change")} == {
            "phase": "serving",
            "spec": "old",
            "change": "0",
        }
        patch(w, "metadata", {"metadata": {"tpudeploy-spec": "new", "tpudeploy-change": "1"}})
        w.clock.sleep(10)
        assert (report(w)["phase"], report(w)["spec"], report(w)["change"]) == ("booted", "new", "1")
        w.clock.sleep(100)
        assert report(w)["phase"] == "serving"


def test_a_change_waits_for_the_next_boot_of_a_node_that_does_not_hear() -> None:
    with world(boot={"boot_seconds": 100, "hears_changes": False}, timings={"reset": 200}) as w:
        grown(w, node={"metadata": {"tpudeploy-spec": "old"}})
        w.clock.sleep(100)
        patch(w, "metadata", {"metadata": {"tpudeploy-spec": "new", "tpudeploy-change": "1"}})
        w.clock.sleep(100)
        assert (report(w)["phase"], report(w)["spec"]) == ("serving", "old")
        w.alpha.projects().locations().queuedResources().reset(name=qr(), body={}).execute()
        w.clock.sleep(200)
        assert (report(w)["phase"], report(w)["spec"]) == ("booted", "new")
        w.clock.sleep(100)
        assert report(w)["phase"] == "serving"


def test_guest_attributes_are_asked_for_by_path_and_worker() -> None:
    with world() as w:
        grown(w, node={"acceleratorType": "v6e-16"})
        assert report(w, "tpudeploy/report")["phase"] == "serving"
        assert report(w, "elsewhere/") == {}
        request = {"name": NAME, "query_path": "tpudeploy/", "worker_ids": ["0", "3"]}
        assert len(w.typed.get_guest_attributes(request=request, timeout=DEADLINE).guest_attributes) == 2


def test_a_simulated_node_answers_on_its_address() -> None:
    with world(boot={"boot_seconds": 50}) as w:
        grown(w)
        base = f"http://{w.node().network_endpoints[0].ip_address}:8000"
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"{base}/health")
        w.clock.sleep(50)
        with urlopen(f"{base}/health") as answer:
            assert answer.status == 200
        with urlopen(f"{base}/v1/models") as answer:
            assert json.load(answer)["data"]
        for path, key in (("chat/completions", "message"), ("completions", "text")):
            request = Request(f"{base}/v1/{path}", data=json.dumps({"model": "m"}).encode(), method="POST")
            with urlopen(request) as answer:
                output = json.load(answer)
            assert output["model"] == "m"
            assert "emulator" in str(output["choices"][0][key])


def test_a_single_machine_can_be_stopped_and_started() -> None:
    with world() as w:
        grown(w)
        w.typed.stop_node(request={"name": NAME}, timeout=DEADLINE)
        assert w.node().state == tpu_v2.Node.State.STOPPING
        w.clock.sleep(5)
        assert w.node().state == tpu_v2.Node.State.STOPPED
        assert w.emulator.billed() == ()
        with pytest.raises(exceptions.BadRequest):
            w.typed.stop_node(request={"name": NAME}, timeout=DEADLINE)
        w.typed.start_node(request={"name": NAME}, timeout=DEADLINE)
        w.clock.sleep(5)
        assert w.node().state == tpu_v2.Node.State.READY
        assert report(w)["phase"] == "serving"


@pytest.mark.parametrize("settings", [{"node": {"acceleratorType": "v6e-16"}}, {"provisioningModel": "FLEX_START"}])
def test_pods_and_flex_start_runs_cannot_be_stopped(settings: dict[str, Any]) -> None:
    with world() as w:
        grown(w, **settings)
        with pytest.raises(exceptions.BadRequest):
            w.typed.stop_node(request={"name": NAME}, timeout=DEADLINE)


def test_nodes_are_listed_over_all_zones() -> None:
    with world() as w:
        w.create("a", zone="us-east5-a")
        w.create("b", zone="us-east5-b")
        w.clock.sleep(60)
        names = [node.name for node in w.typed.list_nodes(parent="projects/p/locations/-", timeout=DEADLINE)]
        assert names == ["projects/p/locations/us-east5-a/nodes/a", "projects/p/locations/us-east5-b/nodes/b"]


def test_a_fleet_of_nodes_has_an_address_each() -> None:
    with world() as w:
        for index in range(20):
            w.create(f"a{index}", zone="us-east5-a")
        w.clock.sleep(60)
        nodes = list(w.typed.list_nodes(parent="projects/p/locations/-", timeout=DEADLINE))
        assert len({node.network_endpoints[0].ip_address for node in nodes}) == 20
        assert len(w.emulator.billed()) == 20


def test_a_nodes_port_is_that_of_its_tpu_runtime() -> None:
    with world() as w:
        grown(w)
        assert [end.port for end in w.node().network_endpoints] == [8470]


def test_where_all_nodes_share_one_address_each_has_a_server_port_in_a_field_of_our_own() -> None:
    with world() as w:
        w.emulator._cloud.addresses.has_own = False  # as on macOS
        for name in ("a", "b"):
            w.create(name)
            w.grow(name)
        with urlopen(f"http://{w.emulator.host}/v2alpha1/projects/p/locations/-/nodes") as answer:
            ends = [node["networkEndpoints"][0] for node in json.load(answer)["nodes"]]
        assert [(end["ipAddress"], end["port"]) for end in ends] == [("127.0.0.1", 8470)] * 2
        ports = {end["emulatedServerPort"] for end in ends}
        assert len(ports) == 2
        for port in ports:
            with urlopen(f"http://127.0.0.1:{port}/health") as answer:
                assert answer.status == 200


def test_addresses_of_two_emulators_differ() -> None:
    with world() as one, world() as other:
        grown(one)
        grown(other)
        assert one.node().network_endpoints[0].ip_address != other.node().network_endpoints[0].ip_address
