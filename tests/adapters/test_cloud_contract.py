"""What the engine relies on, whichever of Google's APIs a slice was requested from: the same acts, on both adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from emulator.cloud_world import World, world

from tpudeploy.adapters.google.backends import Backends
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.catalog.generations import V6E
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import SliceName, Zone
from tpudeploy.domain.orphans import labels_of
from tpudeploy.domain.slices import BootPhase, NodeUpdate, Phase, Remedy, Scope, Slice, SliceRef, SliceRequest

EAST = Zone("us-east5-a")
LABELS = labels_of(SliceName(deployment="gemma", lineage="0123abcd", replica=0, attempt=0))
CREATE = {Backend.QUEUED_RESOURCE: "queuedResources.create", Backend.GCE_INSTANCE: "compute.instances.insert"}
BOTH = pytest.mark.parametrize("backend", Backend)


@dataclass
class Shop:
    """One adapter before an emulated cloud, and one slice that is asked for."""

    world: World
    cloud: Backends
    backend: Backend

    def asking(self, **changes: Any) -> SliceRequest:
        usual = SliceRequest(
            name="gemma-0123abcd-0-0",
            project="p",
            zone=EAST,
            provisioning=Provisioning.SPOT,
            accelerator_type="v6e-1",
            runtime_version=V6E.runtime_of(self.backend),
            boot_disk_gib=200,
            metadata={"tpudeploy-spec": "f" * 16, "enable-guest-attributes": "TRUE"},
            labels={**LABELS, "team": "search"},
            network="default",
            subnetwork=None,
            external_ip=True,
            tags=("vllm",),
            service_account=None,
            reservation=None,
            max_run_seconds=None,
            valid_until_seconds=7200.0,
            backend=self.backend,
        )
        return replace(usual, **changes)

    def request(self, **changes: Any) -> SliceRef:
        request = self.asking(**changes)
        operation = self.cloud.request(request)
        return SliceRef(
            name=request.name,
            project=request.project,
            zone=request.zone,
            operation=operation,
            provisioning=request.provisioning,
            backend=self.backend,
        )

    def slice(self, ref: SliceRef) -> Slice | None:
        return next(iter(self.cloud.slices([ref])), None)

    def granted(self) -> SliceRef:
        ref = self.request()
        self.world.clock.sleep(3600)
        assert self.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well
        return replace(ref, was_granted=True)


@contextmanager
def shop(backend: Backend, *trouble: dict[str, Any], **settings: Any) -> Iterator[Shop]:
    with world(*trouble, **settings) as w:
        connection = Connection(emulator_host=w.emulator.host, timeout=5.0)
        yield Shop(w, Backends(connection, w.clock, threads=1), backend)
        connection.close()


@BOTH
def test_a_slice_is_asked_for_granted_and_deleted(backend: Backend) -> None:
    with shop(backend) as at:
        ref = at.granted()
        granted = at.slice(ref)
        assert granted is not None
        assert (granted.provisioning, granted.accelerator_type) == (Provisioning.SPOT, "v6e-1")
        assert granted.metadata == {"tpudeploy-spec": "f" * 16, "enable-guest-attributes": "TRUE"}
        assert granted.labels == {**LABELS, "team": "search"}
        assert granted.tags == ("vllm",)
        assert granted.internal_ip
        assert granted.external_ip
        at.cloud.release(ref)
        assert at.slice(ref).phase is not Phase.UP  # type: ignore[union-attr]  # None fails the test as well
        at.world.clock.sleep(3600)
        assert at.slice(ref) is None


@BOTH
def test_a_request_that_is_sent_again_is_one_request(backend: Backend) -> None:
    with shop(backend) as at:
        at.request()
        at.world.clock.sleep(7200)  # longer than Google may remember the request's id
        at.cloud.request(at.asking())
        assert len(at.world.emulator.live()[EAST]) == 1


@BOTH
def test_a_request_whose_reply_was_lost_is_found_by_its_name(backend: Backend) -> None:
    with shop(backend, {"fault": "lost-reply", "method": CREATE[backend], "times": 1}) as at:
        with pytest.raises(errors.Fault):
            at.request()
        request = at.asking()
        ref = SliceRef(name=request.name, project="p", zone=EAST, provisioning=Provisioning.SPOT, backend=backend)
        at.world.clock.sleep(3600)
        assert at.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well


@BOTH
def test_a_full_zone_refuses_the_pair_and_creates_nothing(backend: Backend) -> None:
    with shop(backend, {"fault": "stockout"}) as at:
        ref = at.request()
        at.world.clock.sleep(60)
        refused = at.slice(ref)
        assert refused is not None
        assert refused.refusal is not None
        assert (refused.refusal.kind, refused.refusal.remedy) == ("stockout", Remedy.NEXT_ZONE)
        assert refused.refusal.scope is Scope.PAIR
        assert not at.world.emulator.billed()


@BOTH
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_refusal_is_read_although_the_operation_was_not_written_down(backend: Backend, *, forgotten: bool) -> None:
    """Where the operation's name was lost with the reply, only Compute Engine finds it again, by the request's id."""
    with shop(backend, {"fault": "stockout"}) as at:
        ref = at.request()
        at.world.clock.sleep(60)
        refused = at.slice(replace(ref, operation=None) if forgotten else ref)
        if forgotten and backend is Backend.QUEUED_RESOURCE:
            assert refused is None
        else:
            assert refused is not None
            assert refused.phase is Phase.REFUSED


@BOTH
def test_a_quota_of_nothing_closes_the_region_for_its_pool(backend: Backend) -> None:
    with shop(backend, {"fault": "quota-zero"}) as at:
        try:
            ref = at.request()
        except errors.Refused as error:  # the TPU API refuses at once, Compute Engine by its operation
            refusal = error.refusal
        else:
            at.world.clock.sleep(60)
            slice_ = at.slice(ref)
            refusal = None if slice_ is None else slice_.refusal
        assert refusal is not None
        assert (refusal.kind, refusal.limit, refusal.scope) == ("quota-none", 0, Scope.REGION_QUOTA)


@BOTH
def test_a_preempted_slice_is_up_no_longer(backend: Backend) -> None:
    with shop(backend) as at:
        ref = at.granted()
        at.world.emulator.preempt(ref.name)
        phases = []
        for _ in range(20):
            slice_ = at.slice(ref)
            phases.append(None if slice_ is None else slice_.phase)
            at.world.clock.sleep(60)
        assert set(phases[1:]) <= {Phase.SUSPENDING, Phase.HUSK, Phase.LOST, Phase.LEAVING, None}


@BOTH
def test_metadata_labels_and_tags_are_replaced_as_a_whole(backend: Backend) -> None:
    with shop(backend) as at:
        ref = at.granted()
        at.cloud.update(ref, NodeUpdate(metadata={"tpudeploy-spec": "e" * 16}, labels=dict(LABELS), tags=("new",)))
        at.world.clock.sleep(60)
        updated = at.slice(ref)
        assert updated is not None
        assert (updated.metadata, updated.labels) == ({"tpudeploy-spec": "e" * 16}, LABELS)
        assert updated.tags == ("new",)


@BOTH
def test_what_carries_our_mark_is_listed_and_what_does_not_is_left_out(backend: Backend) -> None:
    with shop(backend) as at:
        at.request()
        at.request(name="somebody-else", labels={"team": "ads"})
        at.request(name="gemma-0123abcd-1-1", zone=Zone("europe-west4-a"))
        at.world.clock.sleep(60)
        listing = at.cloud.list_marked("p", (), backends={backend})
        assert {(r.ref.zone, r.ref.name, r.ref.backend) for r in listing.resources} == {
            (EAST, "gemma-0123abcd-0-0", backend),
            ("europe-west4-a", "gemma-0123abcd-1-1", backend),
        }
        assert all(r.is_signed for r in listing.resources if r.ref.name.endswith("0-0"))


@BOTH
def test_a_zone_that_does_not_answer_is_named_and_never_taken_for_empty(backend: Backend) -> None:
    silent = {"fault": "unreachable", "zones": "us-east5-*"}
    with shop(backend, silent) as at:
        at.request(zone=Zone("europe-west4-a"))
        at.world.clock.sleep(60)
        listing = at.cloud.list_marked("p", (), machines=False, backends={backend})
        assert EAST in listing.unreachable
        assert [r.ref.zone for r in listing.resources] == ["europe-west4-a"]


@BOTH
def test_a_slice_of_any_owner_is_found_by_its_name(backend: Backend) -> None:
    with shop(backend) as at:
        at.request(name="somebody-else", labels={"team": "ads"})
        at.world.clock.sleep(60)
        for zone in (None, EAST):
            listing = at.cloud.list_named("p", "somebody-else", (), zone=zone, backends={backend})
            assert [r.ref.name for r in listing.resources] == ["somebody-else"]


@BOTH
def test_a_machine_says_which_server_it_runs(backend: Backend) -> None:
    with shop(backend) as at:
        report = at.cloud.report(at.granted())
        assert report is not None
        assert (report.phase, report.spec) == (BootPhase.SERVING, "f" * 16)


@BOTH
def test_a_machine_that_may_not_write_has_no_report_and_that_is_no_error(backend: Backend) -> None:
    with shop(backend, boot={"guest_attributes": False}) as at:
        assert at.cloud.report(at.granted()) is None


def test_both_apis_are_listed_as_one_project() -> None:
    with shop(Backend.QUEUED_RESOURCE) as at:
        at.request()
        at.backend = Backend.GCE_INSTANCE
        at.request(name="gemma-0123abcd-0-1")
        at.world.clock.sleep(60)
        listing = at.cloud.list_marked("p", (), backends=set(Backend))
        assert {(r.ref.name, r.ref.backend) for r in listing.resources} == {
            ("gemma-0123abcd-0-0", Backend.QUEUED_RESOURCE),
            ("gemma-0123abcd-0-1", Backend.GCE_INSTANCE),
        }


@pytest.mark.parametrize("shows_pending", [True, False])
def test_a_flex_start_request_waits_whether_or_not_its_instance_is_listed(*, shows_pending: bool) -> None:
    """Whether an instance is shown before the grant is not verified: the insert operation keeps the request alive."""
    facts = {"shows_pending": shows_pending}
    with shop(Backend.GCE_INSTANCE, timings={"waiting": 3000}, compute_engine=facts) as at:
        ref = at.request(provisioning=Provisioning.FLEX_START, max_run_seconds=14_400.0)
        at.world.clock.sleep(1200)
        for reference in (ref, replace(ref, operation=None)):
            assert at.slice(reference).phase is Phase.QUEUED  # type: ignore[union-attr]  # None fails the test as well
        at.world.clock.sleep(3000)
        assert at.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well


@pytest.mark.parametrize("lapse_has_error", [True, False])
def test_a_flex_start_request_that_lapsed_is_gone_or_refused_and_never_waits_on(*, lapse_has_error: bool) -> None:
    facts = {"lapse_has_error": lapse_has_error}
    with shop(Backend.GCE_INSTANCE, {"fault": "wait-for-ever"}, compute_engine=facts) as at:
        ref = at.request(provisioning=Provisioning.FLEX_START, max_run_seconds=14_400.0, valid_until_seconds=600.0)
        at.world.clock.sleep(900)
        lapsed = at.slice(ref)
        assert (None if lapsed is None else lapsed.phase) == (Phase.REFUSED if lapse_has_error else None)


def test_a_change_of_an_instance_can_be_sent_again_at_once() -> None:
    with shop(Backend.GCE_INSTANCE) as at:
        ref = at.granted()
        node = NodeUpdate(metadata={"tpudeploy-spec": "e" * 16}, labels=dict(LABELS), tags=())
        at.cloud.update(ref, node)
        at.cloud.update(ref, node)  # nothing differs any more, or its operation is still open
        at.world.clock.sleep(60)
        updated = at.slice(ref)
        assert updated is not None
        assert updated.metadata == {"tpudeploy-spec": "e" * 16}


CHANGED = NodeUpdate(metadata={"tpudeploy-spec": "e" * 16}, labels=dict(LABELS), tags=("new",))


@pytest.mark.parametrize("part", ["setLabels", "setTags", "setMetadata"])
@pytest.mark.parametrize("times", [3, 9], ids=["for a while", "for ever"])
def test_a_part_that_another_client_changes_meanwhile_is_read_and_sent_again_a_few_times(part: str, times: int) -> None:
    stale = {"fault": "org-policy", "method": f"compute.instances.{part}", "message": "The fingerprint does not match."}
    with shop(Backend.GCE_INSTANCE, {**stale, "times": times}) as at:
        ref = at.granted()
        with nullcontext() if times == 3 else pytest.raises(errors.Fault, match="something else changes it"):
            at.cloud.update(ref, CHANGED)
        requests = [request for request in at.world.emulator.requests if request.resource.endswith(f"/{part}")]
        assert [request.verdict.partition(" ")[0] for request in requests] == ["412"] * 3 + [
            "200" if times == 3 else "412"
        ]


@pytest.mark.parametrize("act", ["update", "restart", "release"])
def test_an_instance_in_the_middle_of_another_operation_is_looked_at_again(act: str) -> None:
    busy = {"fault": "zone-unsupported", "message": "The resource 'projects/p/zones/z/instances/x' is not ready"}
    with shop(Backend.GCE_INSTANCE) as at:
        ref = at.granted()
        at.world.emulator.script({**busy, "method": "compute.instances.*", "times": 2})
        acts: dict[str, Callable[[], object]] = {
            "update": partial(at.cloud.update, ref, CHANGED),
            "restart": partial(at.cloud.restart, ref),
            "release": partial(at.cloud.release, ref),
        }
        for _ in range(2):
            with pytest.raises(errors.Fault, match="is not ready") as fault:
                acts[act]()
            assert fault.value.retry_after == 20
        acts[act]()
