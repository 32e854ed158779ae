"""Many slices looked at in one answer, with Google's clients against the emulator: few calls, and nothing missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from emulator.cloud_world import World, world
from real_time import DEADLINE

from tpudeploy.adapters.google.cloud_tpu import CloudTpu
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.domain import errors
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, SliceRef

EAST, WEST = Zone("us-east5-b"), Zone("europe-west4-a")


@contextmanager
def project(*trouble: Mapping[str, Any], **settings: Any) -> Iterator[tuple[World, CloudTpu]]:
    with world(*trouble, **settings) as w:
        connection = CloudConnection(emulator_host=w.emulator.host, timeout=DEADLINE)
        try:
            yield w, CloudTpu(connection, w.clock, threads=4)
        finally:
            connection.close()


def standing(w: World, many: int, zone: Zone = EAST, project: str = "p") -> list[SliceRef]:
    """So many slices, asked for a minute ago."""
    refs = []
    for name in (f"s{number:02}" for number in range(many)):
        node = {"acceleratorType": "v6e-1", "metadata": {"k": name}}
        begun = w.create(name, zone, project=project, node=node)
        refs.append(SliceRef(name=name, project=project, zone=zone, operation=begun["name"]))
    w.clock.sleep(60)
    return refs


def calls(w: World, since: int) -> Counter[str]:
    """What was asked for after the first so many requests: `list nodes`, `get queuedResources`, …"""
    creations: Counter[str] = Counter()
    for request in w.emulator.requests[since:]:
        words = request.path.partition("?")[0].split("/")
        creations[f"list {words[-1]}" if len(words) % 2 else f"get {words[-2]}"] += 1
    return creations


def test_many_in_one_zone_take_its_two_lists_and_show_what_single_looks_show() -> None:
    with project() as (w, cloud):
        refs = standing(w, 20)
        before = len(w.emulator.requests)
        together = cloud.slices(refs)
        assert calls(w, before) == {"list queuedResources": 1, "list nodes": 1}
        assert together == tuple(each for ref in refs for each in cloud.slices([ref]))
        assert together[3].metadata["k"] == "s03"
        assert together[3].phase is Phase.UP


def test_every_page_of_the_lists_is_read() -> None:
    with project(page_most=6) as (w, cloud):
        refs = standing(w, 20)
        before = len(w.emulator.requests)
        assert [each.name for each in cloud.slices(refs)] == [ref.name for ref in refs]
        assert calls(w, before) == {"list queuedResources": 4, "list nodes": 4}


def test_a_few_are_looked_at_by_name_whatever_else_stands_in_their_zone() -> None:
    with project() as (w, cloud):
        refs = standing(w, 12)
        before = len(w.emulator.requests)
        assert len(cloud.slices(refs[:3])) == 3
        assert calls(w, before) == {"get queuedResources": 3, "get nodes": 3}


def test_each_zone_and_each_project_has_lists_of_its_own() -> None:
    with project() as (w, cloud):
        refs = [*standing(w, 8), *standing(w, 8, WEST), *standing(w, 8, WEST, project="q")]
        before = len(w.emulator.requests)
        slices = cloud.slices(refs)
        assert [(f.name, f.zone) for f in slices] == [(r.name, r.zone) for r in refs]
        assert calls(w, before) == {"list queuedResources": 3, "list nodes": 3}


def test_the_lists_of_zones_where_nothing_is_up_yet_ask_for_no_nodes() -> None:
    with project({"fault": "wait-for-ever"}) as (w, cloud):
        refs = standing(w, 10)
        before = len(w.emulator.requests)
        assert {each.phase for each in cloud.slices(refs)} == {Phase.QUEUED}
        assert calls(w, before) == {"list queuedResources": 1}


def test_what_a_list_does_not_show_is_asked_for_by_name_before_it_counts_as_gone() -> None:
    with project({"fault": "unlisted", "seconds": 7200, "name": "s04"}) as (w, cloud):
        refs = standing(w, 10)
        w.delete("s07", force=True)
        w.clock.sleep(60)
        before = len(w.emulator.requests)
        phases = {f.name: f.phase for f in cloud.slices([replace(ref, was_listed=True) for ref in refs])}
        assert phases == {ref.name: Phase.UP for ref in refs if ref.name != "s07"}
        single = [r.path.partition("?")[0] for r in w.emulator.requests[before:] if "queuedResources/" in r.path]
        assert {path.rpartition("/")[2] for path in single} == {"s04", "s07"}


def test_a_slice_whose_node_no_list_shows_is_lost_only_where_the_node_itself_is_gone() -> None:
    with project({"fault": "vanish", "after": 20, "name": "s02"}) as (w, cloud):
        refs = standing(w, 10)
        phases = {f.name: f.phase for f in cloud.slices(refs)}
        assert phases == {ref.name: Phase.LOST if ref.name == "s02" else Phase.UP for ref in refs}


@pytest.mark.parametrize("fault", ["iam-denied", "location-denied", "api-off"])
def test_where_lists_are_refused_each_is_looked_at_by_name(fault: str) -> None:
    with project({"fault": fault, "method": "*.list"}) as (w, cloud):
        refs = standing(w, 10)
        assert {each.phase for each in cloud.slices(refs)} == {Phase.UP}


def test_a_zone_that_does_not_answer_to_the_list_is_asked_by_name() -> None:
    with project({"fault": "unreachable", "zones": EAST}) as (w, cloud):
        refs = standing(w, 10)
        assert len(cloud.slices(refs)) == 10


def test_a_list_that_fails_is_a_fault_as_a_single_look_would_be() -> None:
    with project({"fault": "unavailable", "method": "nodes.list"}) as (w, cloud), pytest.raises(errors.Fault) as fault:
        cloud.slices(standing(w, 10))
    assert fault.value.message.startswith("Could not list the nodes of projects/p/locations/us-east5-b")


def test_a_request_that_was_refused_is_known_among_many() -> None:
    with project({"fault": "stockout", "layer": "L2", "name": "s05"}) as (w, cloud):
        refs = standing(w, 10)
        by_name = {f.name: f for f in cloud.slices(refs)}
        assert by_name["s05"].refusal is not None
        assert {name: f.phase for name, f in by_name.items()} == {
            ref.name: Phase.REFUSED if ref.name == "s05" else Phase.UP for ref in refs
        }
