"""What the engine relies on, whichever of Google's APIs a slice was requested from: the same acts, on both adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import pytest
from emulator.cloud_world import World, world
from real_time import DEADLINE

from tpudeploy.adapters.google.backends import Backends
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.catalog.generations import V6E
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import SliceName, Zone
from tpudeploy.domain.orphans import labels_of
from tpudeploy.domain.slices import BootPhase, NodeUpdate, Phase, RefusalScope, Remedy, Slice, SliceRef, SliceRequest

EAST = Zone("us-east5-a")
LABELS = labels_of(SliceName(deployment="gemma", lineage="0123abcd", replica=0, attempt=0))


class Kind(NamedTuple):
    """What is requested, at which API, and by which call."""

    backend: Backend
    type: str
    create: str

    def __str__(self) -> str:
        return f"{self.backend} {self.type}"


NODE = Kind(Backend.QUEUED_RESOURCE, "v6e-1", "queuedResources.create")
INSTANCE = Kind(Backend.GCE_INSTANCE, "v6e-1", "compute.instances.insert")
GROUP = Kind(Backend.GCE_INSTANCE, "v6e-16", "compute.regionInstanceGroupManagers.insert")
EACH = pytest.mark.parametrize("kind", [NODE, INSTANCE, GROUP], ids=str)
# A group in bulk mode waits for capacity, whatever its provisioning model is.
AT_ONCE = pytest.mark.parametrize("kind", [NODE, INSTANCE], ids=str)


@dataclass
class Shop:
    """One adapter before an emulated cloud, and one slice that is asked for."""

    world: World
    cloud: Backends
    kind: Kind

    @property
    def backend(self) -> Backend:
        return self.kind.backend

    def asking(self, **changes: Any) -> SliceRequest:
        usual = SliceRequest(
            name="gemma-0123abcd-0-0",
            project="p",
            zone=EAST,
            provisioning=Provisioning.SPOT,
            accelerator_type=self.kind.type,
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
        return replace(self.ref_of(request), operation=self.cloud.request(request))

    def ref_of(self, request: SliceRequest) -> SliceRef:
        return SliceRef(
            name=request.name,
            project=request.project,
            zone=request.zone,
            provisioning=request.provisioning,
            backend=self.backend,
            accelerator_type=self.kind.type,
        )

    def slice(self, ref: SliceRef) -> Slice | None:
        return next(iter(self.cloud.slices([ref])), None)

    def granted(self) -> SliceRef:
        ref = self.request()
        self.world.clock.sleep(3600)
        assert self.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well
        return replace(ref, was_granted=True)


@contextmanager
def shop(kind: Kind, *trouble: dict[str, Any], **settings: Any) -> Iterator[Shop]:
    with world(*trouble, **settings) as w:
        connection = CloudConnection(emulator_host=w.emulator.host, timeout=DEADLINE)
        yield Shop(w, Backends(connection, w.clock, threads=1), kind)
        connection.close()


@EACH
def test_a_slice_is_asked_for_granted_and_deleted(kind: Kind) -> None:
    with shop(kind) as at:
        ref = at.granted()
        granted = at.slice(ref)
        assert granted is not None
        assert (granted.provisioning, granted.accelerator_type) == (Provisioning.SPOT, kind.type)
        assert granted.metadata == {"tpudeploy-spec": "f" * 16, "enable-guest-attributes": "TRUE"}
        assert granted.labels == {**LABELS, "team": "search"}
        assert granted.tags == ("vllm",)
        assert granted.internal_ip
        assert granted.external_ip
        at.cloud.release(ref)
        assert at.slice(ref).phase is not Phase.UP  # type: ignore[union-attr]  # None fails the test as well
        at.world.clock.sleep(3600)
        if kind is GROUP:  # its policy and its template can go only after it, and are shown until then
            assert at.slice(ref).phase is Phase.HUSK  # type: ignore[union-attr]  # None fails the test as well
            at.cloud.release(ref)
            at.world.clock.sleep(3600)
        assert at.slice(ref) is None
        assert not at.world.emulator.live()


@EACH
def test_a_request_that_is_sent_again_is_one_request(kind: Kind) -> None:
    with shop(kind) as at:
        at.request()
        at.world.clock.sleep(7200)  # longer than Google may remember the request's id
        at.cloud.request(at.asking())
        assert len(at.world.emulator.live()[EAST]) == 1


@EACH
def test_a_request_whose_reply_was_lost_is_found_by_its_name(kind: Kind) -> None:
    with shop(kind, {"fault": "lost-reply", "method": kind.create, "times": 1}) as at:
        with pytest.raises(errors.Fault):
            at.request()
        request = at.asking()
        ref = SliceRef(
            name=request.name,
            project="p",
            zone=EAST,
            provisioning=Provisioning.SPOT,
            backend=kind.backend,
            accelerator_type=kind.type,
        )
        at.world.clock.sleep(3600)
        assert at.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well


@AT_ONCE
def test_a_full_zone_refuses_the_pair_and_creates_nothing(kind: Kind) -> None:
    with shop(kind, {"fault": "stockout"}) as at:
        ref = at.request()
        at.world.clock.sleep(60)
        refused = at.slice(ref)
        assert refused is not None
        assert refused.refusal is not None
        assert (refused.refusal.kind, refused.refusal.remedy) == ("stockout", Remedy.NEXT_ZONE)
        assert refused.refusal.scope is RefusalScope.PAIR
        assert not at.world.emulator.billed()


@AT_ONCE
@pytest.mark.parametrize("forgotten", [False, True])
def test_a_refusal_is_read_although_the_operation_was_not_written_down(kind: Kind, *, forgotten: bool) -> None:
    """Where the operation's name was lost with the reply, only Compute Engine finds it again, by the request's id."""
    with shop(kind, {"fault": "stockout"}) as at:
        ref = at.request()
        at.world.clock.sleep(60)
        refused = at.slice(replace(ref, operation=None) if forgotten else ref)
        if forgotten and kind is NODE:
            assert refused is None
        else:
            assert refused is not None
            assert refused.phase is Phase.REFUSED


@EACH
def test_a_quota_of_nothing_closes_the_region_for_its_pool(kind: Kind) -> None:
    with shop(kind, {"fault": "quota-zero"}) as at:
        try:
            ref = at.request()
        except errors.Refused as error:  # the TPU API refuses at once, Compute Engine by its operation
            refusal = error.refusal
        else:
            at.world.clock.sleep(60)
            slice_ = at.slice(ref)
            refusal = None if slice_ is None else slice_.refusal
        assert refusal is not None
        assert (refusal.kind, refusal.limit, refusal.scope) == ("quota-none", 0, RefusalScope.REGION_QUOTA)


@EACH
def test_a_preempted_slice_is_up_no_longer(kind: Kind) -> None:
    with shop(kind) as at:
        ref = at.granted()
        at.world.emulator.preempt(ref.name)
        phases = []
        for _ in range(20):
            slice_ = at.slice(ref)
            phases.append(None if slice_ is None else slice_.phase)
            at.world.clock.sleep(60)
        assert set(phases[1:]) <= {Phase.SUSPENDING, Phase.HUSK, Phase.LOST, Phase.LEAVING, None}


@EACH
def test_metadata_labels_and_tags_are_replaced_as_a_whole(kind: Kind) -> None:
    with shop(kind) as at:
        ref = at.granted()
        at.cloud.update(ref, NodeUpdate(metadata={"tpudeploy-spec": "e" * 16}, labels=dict(LABELS), tags=("new",)))
        at.world.clock.sleep(60)
        updated = at.slice(ref)
        assert updated is not None
        assert (updated.metadata, updated.labels) == ({"tpudeploy-spec": "e" * 16}, LABELS)
        assert updated.tags == ("new",)


@EACH
def test_what_carries_our_mark_is_listed_and_what_does_not_is_left_out(kind: Kind) -> None:
    with shop(kind) as at:
        at.request()
        at.request(name="somebody-else", labels={"team": "ads"})
        at.request(name="gemma-0123abcd-1-1", zone=Zone("europe-west4-a"))
        at.world.clock.sleep(60)
        listing = at.cloud.list_marked("p", (), backends={kind.backend})
        assert {(r.ref.zone, r.ref.name, r.ref.backend) for r in listing.resources} == {
            (EAST, "gemma-0123abcd-0-0", kind.backend),
            ("europe-west4-a", "gemma-0123abcd-1-1", kind.backend),
        }
        assert all(r.is_signed for r in listing.resources if r.ref.name.endswith("0-0"))


@EACH
def test_a_zone_that_does_not_answer_is_named_and_never_taken_for_empty(kind: Kind) -> None:
    silent = {"fault": "unreachable", "zones": "us-east5-*"}
    with shop(kind, silent) as at:
        at.request(zone=Zone("europe-west4-a"))
        at.world.clock.sleep(60)
        listing = at.cloud.list_marked("p", (), machines=False, backends={kind.backend})
        assert EAST in listing.unreachable
        assert [r.ref.zone for r in listing.resources] == ["europe-west4-a"]


@EACH
def test_a_slice_of_any_owner_is_found_by_its_name(kind: Kind) -> None:
    with shop(kind) as at:
        at.request(name="somebody-else", labels={"team": "ads"})
        at.world.clock.sleep(60)
        for zone in (None, EAST):
            listing = at.cloud.list_named("p", "somebody-else", (), zone=zone, backends={kind.backend})
            assert [r.ref.name for r in listing.resources] == ["somebody-else"]


@EACH
def test_a_machine_says_which_server_it_runs(kind: Kind) -> None:
    with shop(kind) as at:
        report = at.cloud.report(at.granted())
        assert report is not None
        assert (report.phase, report.spec) == (BootPhase.SERVING, "f" * 16)


@EACH
def test_a_machine_that_may_not_write_has_no_report_and_that_is_no_error(kind: Kind) -> None:
    with shop(kind, boot={"guest_attributes": False}) as at:
        assert at.cloud.report(at.granted()) is None


def test_both_apis_are_listed_as_one_project() -> None:
    with shop(NODE) as at:
        at.request()
        at.kind = INSTANCE
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
    with shop(INSTANCE, timings={"waiting": 3000}, compute_engine=facts) as at:
        ref = at.request(provisioning=Provisioning.FLEX_START, max_run_seconds=14_400.0)
        at.world.clock.sleep(1200)
        for reference in (ref, replace(ref, operation=None)):
            assert at.slice(reference).phase is Phase.QUEUED  # type: ignore[union-attr]  # None fails the test as well
        at.world.clock.sleep(3000)
        assert at.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well


@pytest.mark.parametrize("lapse_has_error", [True, False])
def test_a_flex_start_request_that_lapsed_is_gone_or_refused_and_never_waits_on(*, lapse_has_error: bool) -> None:
    facts = {"lapse_has_error": lapse_has_error}
    with shop(INSTANCE, {"fault": "wait-for-ever"}, compute_engine=facts) as at:
        ref = at.request(provisioning=Provisioning.FLEX_START, max_run_seconds=14_400.0, valid_until_seconds=600.0)
        at.world.clock.sleep(900)
        lapsed = at.slice(ref)
        assert lapsed is not None
        assert (lapsed.phase is Phase.REFUSED) == lapse_has_error
        # Its operation is over, and whether it still appears is a question of time.
        assert lapsed.operation is not None
        assert lapsed.operation.ended_at is not None
        assert at.slice(replace(ref, was_listed=True)) == (lapsed if lapse_has_error else None)


def test_a_change_of_an_instance_can_be_sent_again_at_once() -> None:
    with shop(INSTANCE) as at:
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
    with shop(INSTANCE, {**stale, "times": times}) as at:
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
    with shop(INSTANCE) as at:
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


# A group of instances: it waits for all of its machines, and its policy and its template go with it.


def test_a_group_waits_for_capacity_and_says_so_and_a_quota_that_lacks_is_a_refusal() -> None:
    with shop(GROUP, {"fault": "no-grant", "until": 600}) as at:
        ref = at.request()
        at.world.clock.sleep(120)
        waiting = at.slice(ref)
        assert waiting is not None
        assert (waiting.phase, waiting.raw_state) == (Phase.QUEUED, "waiting (stockout)")
        at.world.clock.sleep(900)
        assert at.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well
    with shop(GROUP, quota=[{"api": "compute", "class": "preemptible", "region": "us-east5", "limit": 8}]) as at:
        ref = at.request()
        at.world.clock.sleep(120)
        refused = at.slice(ref)
        assert refused is not None
        assert refused.phase is Phase.HUSK
        assert refused.refusal is not None
        assert (refused.refusal.limit, refused.refusal.scope) == (8, RefusalScope.REGION_QUOTA)


@pytest.mark.parametrize("part", ["resourcePolicies", "regionInstanceTemplates", "regionInstanceGroupManagers"])
@pytest.mark.parametrize("fault", ["lost-reply", "org-policy", "failed-reply"])
def test_whatever_becomes_of_one_of_its_requests_a_group_is_whole_or_is_given_back(part: str, fault: str) -> None:
    row = {"fault": fault, "method": f"compute.{part}.insert", "times": 1}
    with shop(GROUP, row) as at:
        with suppress(errors.Fault, errors.Refused):
            at.request()
        request = at.asking()
        ref = replace(at.ref_of(request), operation=None)
        at.world.clock.sleep(60)
        slice_ = at.slice(ref)
        ref = replace(ref, was_listed=slice_ is not None)
        if slice_ is not None and slice_.phase is not Phase.UP:
            assert slice_.phase in {Phase.HUSK, Phase.REFUSED}
            assert (slice_.refusal is not None) == (fault == "org-policy")
        for _ in range(3):
            at.cloud.release(ref)
            at.world.clock.sleep(120)
        assert at.slice(ref) is None
        assert not at.world.emulator.live()


def test_a_group_of_which_one_machine_is_not_created_is_no_slice() -> None:
    with shop(GROUP, {"fault": "internal-error"}) as at:
        ref = at.request()
        at.world.clock.sleep(600)
        partial_ = at.slice(ref)
        assert partial_ is not None
        assert (partial_.phase, partial_.raw_state) == (Phase.HUSK, "3 of 4 workers run")


def test_a_slice_that_lost_one_of_its_machines_is_lost_once_that_machine_is_certainly_gone() -> None:
    with shop(GROUP) as at:
        ref = at.granted()
        at.world.emulator.delete_instance("gemma-0123abcd-0-0-w-3")
        phases = []
        for _ in range(10):
            phases.append(at.slice(ref).phase)  # type: ignore[union-attr]  # None fails the test as well
            at.world.clock.sleep(1)
        assert phases[0] is Phase.SUSPENDING
        assert phases[-1] is Phase.LOST


def test_the_machines_of_a_group_report_by_their_number_and_none_of_them_is_listed_by_itself() -> None:
    with shop(GROUP) as at:
        ref = at.granted()
        report = at.cloud.report(ref)
        assert report is not None
        assert (report.phase, len(report.workers)) == (BootPhase.SERVING, 4)
        assert all(each is not None for each in report.workers)
        assert not at.cloud.list_named("p", "gemma-0123abcd-0-0-w-1", (), backends=set(Backend)).resources


def test_a_long_name_is_shortened_in_the_names_of_machines_alone() -> None:
    with shop(GROUP) as at:
        name = f"{'a' * 39}z-0123abcd-0-12"
        ref = replace(at.request(name=name), name=name)
        at.world.clock.sleep(600)
        assert at.slice(ref).phase is Phase.UP  # type: ignore[union-attr]  # None fails the test as well
