"""Looking through a project, with Google's clients against the emulator: every page, every zone, and what is silent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import pytest
from emulator.cloud_world import World, world
from real_time import DEADLINE

from tpudeploy.adapters.google.body import queued_resource, read_back
from tpudeploy.adapters.google.cloud_tpu import CloudTpu
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import SliceName, Zone
from tpudeploy.domain.orphans import CloudResource, OwnerMark, labels_of
from tpudeploy.domain.slices import Phase, SliceRequest

OURS = labels_of(SliceName(deployment="gemma", lineage="0123abcd", replica=0, attempt=0))
NO_WILDCARD = {"fault": "zone-unsupported", "zone": "-", "method": "*.list"}
EAST, WEST = Zone("us-east5-b"), Zone("europe-west4-a")


@contextmanager
def project(*trouble: Mapping[str, Any], **settings: Any) -> Iterator[tuple[World, CloudTpu]]:
    with world(*trouble, **settings) as w:
        connection = CloudConnection(emulator_host=w.emulator.host, timeout=DEADLINE)
        yield w, CloudTpu(connection, w.clock)
        connection.close()


def ask(w: World, name: str, zone: str = EAST, labels: Mapping[str, str] = OURS, **node: Any) -> None:
    """A small slice, so that many fit."""
    w.create(name, zone, node={"acceleratorType": "v6e-1", "labels": dict(labels), **node})


def names(resources: tuple[CloudResource, ...]) -> set[tuple[str, str]]:
    return {(f.ref.zone, f.ref.name) for f in resources}


def test_what_carries_our_mark_is_found_in_every_zone_and_nothing_else_is() -> None:
    with project() as (w, cloud):
        ask(w, "gemma-0123abcd-0-0")
        ask(w, "gemma-0123abcd-1-3", WEST)
        ask(w, "by-labels-alone")
        ask(w, "training", labels={"team": "research"})
        ask(w, "half-a-mark", labels={"tpudeploy-deployment": "gemma"})
        w.create("elsewhere-0123abcd-0-0", project="another", node={"acceleratorType": "v6e-1"})
        listing = cloud.list_marked("p", ())
        marks = {f.ref.name: f.mark for f in listing.resources}
        assert marks == {
            "gemma-0123abcd-0-0": OwnerMark(deployment="gemma", lineage="0123abcd", replica=0),
            "gemma-0123abcd-1-3": OwnerMark(deployment="gemma", lineage="0123abcd", replica=1),
            "by-labels-alone": OwnerMark(deployment="gemma", lineage="0123abcd", replica=0),
        }
        assert all(f.is_signed for f in listing.resources)
        assert (listing.unreachable, listing.searched_zones) == ((), ())


def test_a_name_that_only_looks_like_ours_is_found_as_such() -> None:
    with project() as (w, cloud):
        ask(w, "train-deadbeef-0-1", labels={})
        ask(w, "gemma-0123abcd-0-0", labels={}, metadata={"tpudeploy-spec": "f" * 16})
        signed = {f.ref.name: f.is_signed for f in cloud.list_marked("p", ()).resources}
        assert signed == {"train-deadbeef-0-1": False, "gemma-0123abcd-0-0": True}


@pytest.mark.parametrize("name", ["gemma-0123abcg-0-0", "gemma-0123abcd-0", f"{'g' * 41}-0123abcd-0-0", "x-y-0-1"])
def test_a_name_of_another_form_is_nobodys(name: str) -> None:
    with project() as (w, cloud):
        ask(w, name, labels={})
        assert cloud.list_marked("p", ()).resources == ()


def test_every_page_is_read() -> None:
    with project(creates_per_minute=1000, page_most=100) as (w, cloud):
        for attempt in range(205):
            ask(w, f"gemma-0123abcd-0-{attempt}")
        assert len(cloud.list_marked("p", (), machines=False).resources) == 205
        lists = [r for r in w.emulator.requests if "locations/-/queuedResources" in r.path]
        assert len(lists) == 3


@pytest.mark.parametrize("refusal", [NO_WILDCARD, {"fault": "location-denied", "zone": "-", "method": "*.list"}])
def test_where_all_zones_cannot_be_listed_at_once_they_are_one_by_one(refusal: Mapping[str, Any]) -> None:
    with project(refusal, offers={"us-west4-a": ["v6e-1"]}) as (w, cloud):
        ask(w, "gemma-0123abcd-0-0")
        ask(w, "gemma-0123abcd-0-1", "us-west4-a")
        w.grow("gemma-0123abcd-0-0")
        listing = cloud.list_marked("p", [Zone("us-west4-a")])
        assert names(listing.resources) == {(EAST, "gemma-0123abcd-0-0"), ("us-west4-a", "gemma-0123abcd-0-1")}
        zones_of_tpu_api = {zone for each in GENERATIONS if each.tpu_api for zone in each.zones}
        assert set(listing.searched_zones) == {"us-west4-a", *zones_of_tpu_api}
        assert listing.unreachable == ()


@pytest.mark.parametrize(
    ("fault", "is_silent"), [("unavailable", True), ("location-denied", True), ("zone-unsupported", False)]
)
def test_one_by_one_a_zone_is_empty_only_where_google_says_that_it_has_no_tpus(fault: str, is_silent: bool) -> None:
    with project(NO_WILDCARD, {"fault": fault, "zone": WEST, "method": "queuedResources.list"}) as (w, cloud):
        ask(w, "gemma-0123abcd-0-0")
        ask(w, "gemma-0123abcd-0-1", WEST)
        listing = cloud.list_marked("p", ())
        assert names(listing.resources) == {(EAST, "gemma-0123abcd-0-0")}
        assert listing.unreachable == ((WEST,) if is_silent else ())


def test_a_zone_that_did_not_answer_is_named_and_not_taken_for_empty() -> None:
    with project({"fault": "unreachable", "zones": "us-east5-*"}) as (w, cloud):
        ask(w, "gemma-0123abcd-0-0")
        ask(w, "gemma-0123abcd-0-1", WEST)
        listing = cloud.list_marked("p", ())
        assert names(listing.resources) == {(WEST, "gemma-0123abcd-0-1")}
        assert listing.unreachable == ("us-east5-a", "us-east5-b", "us-east5-c")


def test_a_node_is_bare_only_where_its_queued_resource_is_known_to_be_gone() -> None:
    with project({"fault": "orphan", "times": 1}) as (w, cloud):
        for name in ("gemma-0123abcd-0-0", "gemma-0123abcd-0-1"):
            ask(w, name)
            w.grow(name)
        w.delete("gemma-0123abcd-0-0", force=True)
        w.grow("gemma-0123abcd-0-0", until="ABSENT")
        bare = {f.ref.name: f.ref.is_bare for f in cloud.list_marked("p", ()).resources}
        assert bare == {"gemma-0123abcd-0-0": True, "gemma-0123abcd-0-1": False}
        (alone,) = (f for f in cloud.list_marked("p", ()).resources if f.ref.is_bare)
        assert (alone.slice.phase, alone.slice.raw_state) == (Phase.UP, "node READY")
        assert alone.request.provisioning is Provisioning.SPOT
        # Silent about queued resources, the zone says nothing about its nodes either.
        w.emulator.script({"fault": "unreachable", "method": "queuedResources.list", "zones": EAST})
        listing = cloud.list_marked("p", ())
        assert (listing.resources, listing.unreachable) == ((), (EAST,))


def test_a_bare_node_is_deleted_and_looked_at_until_it_is_gone() -> None:
    with project({"fault": "orphan"}) as (w, cloud):
        ask(w, "gemma-0123abcd-0-0")
        w.grow("gemma-0123abcd-0-0")
        w.delete("gemma-0123abcd-0-0", force=True)
        w.grow("gemma-0123abcd-0-0", until="ABSENT")
        (bare,) = cloud.list_marked("p", ()).resources
        (observed,) = cloud.slices([bare.ref])
        assert observed.phase is Phase.UP
        cloud.release(bare.ref)
        (observed,) = cloud.slices([bare.ref])
        assert observed.phase is Phase.LEAVING
        cloud.release(bare.ref)  # refused while it is being deleted, and no error
        w.clock.sleep(10)
        assert cloud.slices([bare.ref]) == ()
        cloud.release(bare.ref)  # absent is success


def test_an_active_slice_without_its_node_is_shown_as_lost() -> None:
    with project({"fault": "vanish", "after": 5}) as (w, cloud):
        ask(w, "gemma-0123abcd-0-0")
        w.grow("gemma-0123abcd-0-0")
        (there,) = cloud.list_marked("p", ()).resources
        w.clock.sleep(10)
        (orphan,) = cloud.list_marked("p", ()).resources
        assert (there.slice.phase, orphan.slice.phase) == (Phase.UP, Phase.LOST)
        assert orphan.slice.raw_state == "ACTIVE, no node"


@pytest.mark.parametrize("fault", ["iam-denied", "api-off"])
def test_who_may_not_list_is_told_so_and_no_zone_is_tried(fault: str) -> None:
    with project({"fault": fault}) as (w, cloud):
        with pytest.raises(errors.Denied):
            cloud.list_marked("p", (), machines=False)
        assert len(w.emulator.requests) == 1


def test_a_fault_is_a_fault_and_no_zone_is_tried() -> None:
    with project({"fault": "unavailable"}) as (w, cloud):
        with pytest.raises(errors.Fault):
            cloud.list_marked("p", (), machines=False)
        assert len(w.emulator.requests) == 1


REQUEST = SliceRequest(
    name="gemma-0123abcd-0-0",
    project="p",
    zone=EAST,
    provisioning=Provisioning.FLEX_START,
    accelerator_type="v6e-8",
    runtime_version="v2-alpha-tpuv6e",
    boot_disk_gib=200,
    metadata={"tpudeploy-spec": "f" * 16},
    labels={**OURS, "team": "search"},
    network="vpc",
    subnetwork="sub",
    external_ip=True,
    tags=("vllm",),
    service_account="a@p.iam.gserviceaccount.com",
    reservation=None,
    max_run_seconds=3600.0,
    valid_until_seconds=7200.0,
)


@pytest.mark.parametrize("provisioning", Provisioning)
def test_what_was_asked_is_read_back_from_what_is_listed(provisioning: Provisioning) -> None:
    reservation = "r" if provisioning is Provisioning.RESERVED else None
    request = replace(REQUEST, provisioning=provisioning, reservation=reservation)
    requests = read_back(queued_resource(request))
    assert requests.nodes == (request.name,)
    for name in (f.name for f in fields(requests) if f.name != "nodes"):
        assert getattr(requests, name) == getattr(request, name), name


def test_what_a_listing_leaves_out_is_not_known() -> None:
    bare = read_back({"name": "projects/p/locations/us-east5-b/queuedResources/q"})
    assert (bare.accelerator_type, bare.provisioning) == ("", Provisioning.ON_DEMAND)
    assert (bare.external_ip, bare.boot_disk_gib, bare.runtime_version) == (None, None, None)
    # A false value is left out by the API; the section around it says that it was there.
    spec = read_back({"tpu": {"nodeSpec": [{"node": {"networkConfig": {"network": "vpc"}}}]}, "spot": {}})
    assert (spec.external_ip, spec.provisioning) == (False, Provisioning.SPOT)
