"""A slice's life as Google's clients see it: every state, and who may leave it how."""

from __future__ import annotations

import json

import pytest
from emulator.cloud_world import ZONE, World, finished, qr, refused, world
from google.api_core import exceptions
from google.cloud import tpu_v2
from real_time import DEADLINE

PARENT = f"projects/p/locations/{ZONE}"


def test_a_request_passes_every_state_on_its_way_up_and_never_skips_one() -> None:
    with world() as w:
        w.create()
        states = [w.state()]
        for _ in range(10):
            w.clock.sleep(1)
            states.append(w.state())
        assert list(dict.fromkeys(states)) == ["CREATING", "WAITING_FOR_RESOURCES", "PROVISIONING", "ACTIVE"]


def test_the_create_operation_ends_when_the_request_is_queued_not_when_it_is_granted() -> None:
    with world({"fault": "wait-for-ever"}) as w:
        operation = w.create()
        assert not w.operation(operation).get("done")
        w.clock.sleep(1)
        ended = w.operation(operation)
        assert ended["done"]
        assert ended["response"]["name"] == qr()
        assert w.state() == "WAITING_FOR_RESOURCES"


def test_the_old_name_of_the_queue_is_shown_where_a_scenario_says_so() -> None:
    with world({"fault": "accepted"}) as w:
        w.create()
        w.grow(until="ACCEPTED")
        w.grow(until="ACTIVE")


def test_a_long_sleep_ages_a_slice_step_by_step() -> None:
    with world() as w:
        w.create(runDuration={"maxRunDuration": "60s"}, provisioningModel="FLEX_START")
        w.clock.sleep(100_000)
        assert w.state() == "SUSPENDED"


def test_a_node_comes_with_provisioning_and_is_ready_when_the_slice_is_active() -> None:
    with world() as w:
        w.create(node={"networkConfig": {"enableExternalIps": True}, "labels": {"team": "x"}})
        w.grow(until="PROVISIONING")
        assert w.node().state == tpu_v2.Node.State.CREATING
        assert w.emulator.billed() == ()
        w.grow()
        node = w.node()
        assert (node.state, node.health) == (tpu_v2.Node.State.READY, tpu_v2.Node.Health.HEALTHY)
        assert node.queued_resource == qr()
        assert node.labels["team"] == "x"
        assert node.network_endpoints[0].ip_address.startswith("127.")
        assert node.network_endpoints[0].access_config.external_ip
        assert w.emulator.billed() == ("a",)


def test_a_node_without_external_addresses_reports_none() -> None:
    with world() as w:
        w.create()
        w.grow()
        assert not w.node().network_endpoints[0].access_config.external_ip


def test_a_slice_of_several_hosts_reports_one_endpoint_a_host() -> None:
    with world() as w:
        w.create(node={"acceleratorType": "v6e-16"})
        w.grow()
        addresses = {endpoint.ip_address for endpoint in w.node().network_endpoints}
        assert len(addresses) == 4


def test_an_active_slice_is_deleted_only_by_force() -> None:
    with world() as w:
        w.create()
        w.grow()
        with refused(400, "FAILED_PRECONDITION"):
            w.delete()
        assert w.state() == "ACTIVE"
        operation = w.delete(force=True)
        assert w.state() == "DELETING"
        w.grow(until="ABSENT")
        assert w.operation(operation)["done"]
        assert "error" not in w.operation(operation)
        assert w.emulator.billed() == ()
        assert w.emulator.live() == {}


@pytest.mark.parametrize("force", [True, False])
def test_a_waiting_slice_is_deleted_with_or_without_force(force: bool) -> None:
    with world({"fault": "wait-for-ever"}) as w:
        w.create()
        w.grow(until="WAITING_FOR_RESOURCES")
        w.delete(force=force)
        w.grow(until="ABSENT")


@pytest.mark.parametrize("state", ["CREATING", "PROVISIONING", "SUSPENDING"])
def test_in_states_that_cannot_be_left_a_delete_is_taken_and_its_operation_fails_later(state: str) -> None:
    with world({"fault": "preempt", "after": 1}) as w:
        w.create()
        w.grow(until=state)
        operation = w.delete(force=True)
        assert not w.operation(operation).get("done")
        w.clock.sleep(1.5)
        assert w.operation(operation)["error"]["code"] == 9
        assert w.state() not in ("DELETING", "ABSENT")


def test_deleting_again_while_it_is_being_deleted_ends_well() -> None:
    with world() as w:
        w.create()
        w.grow()
        w.delete(force=True)
        again = w.delete(force=True)
        w.grow(until="ABSENT")
        w.clock.sleep(2)
        assert "error" not in w.operation(again)


def test_deleting_what_is_not_there_is_404() -> None:
    with world() as w, refused(404, "NOT_FOUND"):
        w.delete()


def test_deleting_the_node_by_hand_leaves_a_husk_suspended_by_the_user() -> None:
    with world() as w:
        w.create()
        w.grow()
        w.typed.delete_node(name=f"{PARENT}/nodes/a", timeout=DEADLINE)
        assert w.get()["state"] == {"state": "SUSPENDING", "stateInitiator": "USER", "suspendingData": {}}
        w.grow(until="SUSPENDED")
        assert w.get()["state"]["stateInitiator"] == "USER"
        with pytest.raises(exceptions.NotFound):
            w.node()
        w.delete()
        w.grow(until="ABSENT")


def test_a_preempted_node_says_so_then_goes_and_the_slice_ends_as_a_husk() -> None:
    with world({"fault": "preempt", "after": 10}) as w:
        w.create()
        w.grow()
        w.clock.sleep(10)
        assert w.node().state == tpu_v2.Node.State.PREEMPTED
        assert w.state() == "ACTIVE"
        assert w.emulator.billed() == ()
        w.grow(until="SUSPENDING")
        w.grow(until="SUSPENDED")
        assert w.get()["state"]["stateInitiator"] == "SERVICE"
        with pytest.raises(exceptions.NotFound):
            w.node()


def test_a_test_can_preempt_by_name() -> None:
    with world() as w:
        w.create()
        w.grow()
        w.emulator.preempt("a")
        w.grow(until="SUSPENDED")
        with pytest.raises(KeyError):
            w.emulator.preempt("a")


def test_a_flex_start_run_ends_on_time_and_leaves_a_husk() -> None:
    with world() as w:
        w.create(provisioningModel="FLEX_START", runDuration={"maxRunDuration": "600s"})
        w.grow()
        w.clock.sleep(599)
        assert w.state() == "ACTIVE"
        w.clock.sleep(1)
        assert w.state() == "SUSPENDING"
        w.grow(until="SUSPENDED")


def test_a_flex_start_run_without_a_length_lasts_seven_days() -> None:
    with world() as w:
        w.create(provisioningModel="FLEX_START")
        w.grow()
        w.clock.sleep(7 * 86400 - 1)
        assert w.state() == "ACTIVE"
        w.clock.sleep(1)
        assert w.state() == "SUSPENDING"


def test_a_run_longer_than_seven_days_is_refused() -> None:
    with world() as w, refused(400, "INVALID_ARGUMENT", "maxRunDuration"):
        w.create(provisioningModel="FLEX_START", runDuration={"maxRunDuration": "604801s"})


def test_a_request_that_is_not_granted_in_its_time_fails_and_stays() -> None:
    with world({"fault": "wait-for-ever"}) as w:
        w.create(queueingPolicy={"validUntilDuration": "100s"})
        w.clock.sleep(99)
        assert w.state() == "WAITING_FOR_RESOURCES"
        w.clock.sleep(1)
        state = w.get()["state"]
        assert state["state"] == "FAILED"
        assert state["failedData"]["error"]["code"] == 4
        w.clock.sleep(100_000)
        assert w.state() == "FAILED"


def test_a_request_is_not_granted_before_it_is_valid() -> None:
    with world() as w:
        w.create(queueingPolicy={"validAfterDuration": "500s"})
        w.clock.sleep(499)
        assert w.state() == "WAITING_FOR_RESOURCES"
        w.grow()


def test_a_granted_request_no_longer_lapses() -> None:
    with world() as w:
        w.create(queueingPolicy={"validUntilDuration": "3s"})
        w.grow()
        w.clock.sleep(100)
        assert w.state() == "ACTIVE"


def test_a_request_may_overstay_its_own_end() -> None:
    with world({"fault": "overstays"}) as w:
        w.create(queueingPolicy={"validUntilDuration": "3s"})
        w.clock.sleep(86400)
        assert w.state() == "WAITING_FOR_RESOURCES"


def test_reset_reboots_the_machines_and_keeps_the_slice() -> None:
    with world(boot={"boot_seconds": 100}) as w:
        w.create(node={"metadata": {"tpudeploy-spec": "s"}})
        w.grow()
        w.clock.sleep(100)
        assert _report(w)["phase"] == "serving"
        operation = w.alpha.projects().locations().queuedResources().reset(name=qr(), body={}).execute()
        assert w.node().state == tpu_v2.Node.State.RESTARTING
        w.clock.sleep(240)
        assert w.operation(operation)["done"]
        assert w.node().state == tpu_v2.Node.State.READY
        assert _report(w)["phase"] == "booted"
        w.clock.sleep(100)
        assert _report(w)["phase"] == "serving"


def test_reset_of_a_husk_is_refused() -> None:
    with world({"fault": "preempt", "after": 1}) as w:
        w.create()
        w.grow(until="SUSPENDED")
        with refused(400, "FAILED_PRECONDITION", "reset is not supported while in state SUSPENDED"):
            w.alpha.projects().locations().queuedResources().reset(name=qr(), body={}).execute()


def test_the_same_life_on_v2_with_the_typed_client_waiting_for_its_operations() -> None:
    with world() as w:
        node = tpu_v2.Node(accelerator_type="v6e-8", runtime_version="v2-alpha-tpuv6e")
        spec = tpu_v2.QueuedResource.Tpu.NodeSpec(parent=PARENT, node_id="a", node=node)
        queued_resource = tpu_v2.QueuedResource(tpu={"node_spec": [spec]}, spot={})
        begun = w.typed.create_queued_resource(
            parent=PARENT, queued_resource=queued_resource, queued_resource_id="a", timeout=DEADLINE
        )
        w.clock.sleep(1)
        assert finished(begun).name == qr()
        w.grow()
        assert w.node().scheduling_config.spot
        request = tpu_v2.DeleteQueuedResourceRequest(name=qr(), force=True)
        leaving = w.typed.delete_queued_resource(request=request, timeout=DEADLINE)
        w.clock.sleep(2)
        finished(leaving)
        with pytest.raises(exceptions.NotFound):
            w.typed.get_queued_resource(name=qr(), timeout=DEADLINE)


def _report(w: World) -> dict[str, str]:
    response = w.typed.get_guest_attributes(
        request={"name": f"{PARENT}/nodes/a", "query_path": "tpudeploy/"}, timeout=DEADLINE
    )
    (stored_report,) = [item.value for item in response.guest_attributes[0].query_value.items if item.key == "report"]
    report: dict[str, str] = json.loads(stored_report)
    return report
