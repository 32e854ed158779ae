"""Reads by Google's typed client: every page, one request each, the same errors and the same check as discovery's."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from answering import answering, http
from emulator.cloud_world import ZONE, World, world
from google.protobuf.json_format import ParseError
from real_time import DEADLINE

from tpudeploy.adapters.google import nodes, transport, typed_reads
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Phase, SliceRef

EAST = Zone(ZONE)
EVERYWHERE = "projects/p/locations/-"


@contextmanager
def project(*trouble: Mapping[str, Any]) -> Iterator[tuple[World, CloudConnection]]:
    with world(*trouble) as w:
        connection = CloudConnection(emulator_host=w.emulator.host, timeout=DEADLINE)
        yield w, connection
        connection.close()


@contextmanager
def replying(path: str, body: str | Callable[[bytes], bytes]) -> Iterator[CloudConnection]:
    """Yield a connection to a server that gives this reply, whatever the emulator would say."""
    with answering({path: http(body) if isinstance(body, str) else body}) as url:
        connection = CloudConnection(emulator_host=url.removeprefix("http://"), timeout=DEADLINE)
        yield connection
        connection.close()


def test_types_and_runtime_versions_of_a_zone_are_read() -> None:
    with project() as (_, connection):
        types = typed_reads.slice_types(connection, "p", EAST)
        versions = typed_reads.runtime_versions(connection, "p", EAST)
        assert not isinstance(types, Unknown)
        assert {"v6e-1", "v6e-256"} <= types
        assert not isinstance(versions, Unknown)
        assert "v2-alpha-tpuv6e" in versions


@pytest.mark.parametrize(
    ("kind", "field", "read"),
    [
        ("acceleratorTypes", "type", typed_reads.slice_types),
        ("runtimeVersions", "version", typed_reads.runtime_versions),
    ],
)
def test_a_list_is_read_to_its_last_page(
    kind: str, field: str, read: Callable[[CloudConnection, str, Zone], frozenset[str] | Unknown]
) -> None:
    def page(request: bytes) -> bytes:
        is_second = b"pageToken=next" in request
        body = {kind: [{field: "b" if is_second else "a"}], **({} if is_second else {"nextPageToken": "next"})}
        return http(json.dumps(body))

    with replying(f"/v2/projects/p/locations/{ZONE}/{kind}", page) as connection:
        assert read(connection, "p", EAST) == frozenset({"a", "b"})


def test_a_node_is_what_discovery_says_of_it() -> None:
    with project() as (w, connection):
        w.create("a", node={"labels": {"team": "x"}, "metadata": {"k": "v"}, "tags": ["web"]})
        w.grow("a")
        (listed,), silent = typed_reads.list_nodes(connection, EVERYWHERE)
        ref = SliceRef(name="a", project="p", zone=EAST)
        by_discovery = nodes.get(connection, ref)
        assert by_discovery is not None
        assert nodes.bare_slice(ref, listed) == nodes.bare_slice(ref, by_discovery)
        assert listed == typed_reads.get_node(connection, "p", EAST, "a")
        assert silent == set()


def test_a_state_that_is_newer_than_the_client_is_not_taken_for_a_loss() -> None:
    body = json.dumps({"nodes": [{"name": f"projects/p/locations/{ZONE}/nodes/a", "state": 77, "newField": {"x": 1}}]})
    with replying("/v2/projects/p/locations/-/nodes", body) as connection:
        (node,), _ = typed_reads.list_nodes(connection, EVERYWHERE)
        assert nodes.bare_slice(SliceRef(name="a", project="p", zone=EAST), node).phase is Phase.UP


def test_one_request_is_sent_for_a_reply_that_fails() -> None:
    with project({"fault": "unavailable", "method": "nodes.list"}) as (w, connection):
        with pytest.raises(errors.Fault, match="Could not list the nodes"):
            typed_reads.list_nodes(connection, EVERYWHERE)
        assert len(w.emulator.requests) == 1


@pytest.mark.parametrize(
    ("trouble", "because"),
    [
        ({"fault": "iam-denied", "method": "acceleratorTypes.list"}, "Permission"),
        ({"fault": "unavailable", "method": "acceleratorTypes.list"}, "Could not list the types of us-east5-b"),
        ({"fault": "connection-refused", "method": "acceleratorTypes.list"}, "Could not list the types of us-east5-b"),
    ],
    ids=["denied", "unavailable", "refused"],
)
def test_a_zone_that_does_not_answer_is_unknown_and_not_empty(trouble: Mapping[str, Any], because: str) -> None:
    with project(trouble) as (_, connection):
        types = typed_reads.slice_types(connection, "p", EAST)
        assert isinstance(types, Unknown)
        assert because in types.because


def test_a_zone_that_the_project_cannot_use_lists_nothing() -> None:
    with project({"fault": "location-denied", "method": "acceleratorTypes.list"}) as (_, connection):
        assert typed_reads.slice_types(connection, "p", EAST) == frozenset()


def test_a_reply_that_does_not_come_ends_at_the_timeout_of_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = CloudConnection(emulator_host=f"127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        with pytest.raises(errors.Fault, match="timed out"):
            typed_reads.get_node(connection, "p", EAST, "a")
        connection.close()


def test_the_check_before_each_request_stops_it() -> None:
    def check() -> None:
        raise errors.StateConflict("The lock is lost.")

    with project() as (w, connection):
        with transport.guarded(check), pytest.raises(errors.StateConflict):
            typed_reads.list_nodes(connection, EVERYWHERE)
        assert not w.emulator.requests


def test_the_page_of_a_proxy_is_a_fault() -> None:
    with (
        replying("/v2/projects/p/locations/-/nodes", "<html>Sign in</html>") as connection,
        pytest.raises(errors.Fault, match="the reply cannot be parsed"),
    ):
        typed_reads.list_nodes(connection, EVERYWHERE)


def test_the_client_refuses_a_location_with_a_new_field_so_locations_stay_on_discovery() -> None:
    """Once this fails, adapters/google/offers.py can read the locations by the typed client too."""
    body = json.dumps({"locations": [{"name": f"projects/p/locations/{ZONE}", "newField": 1}]})
    with (
        replying("/v2/projects/p/locations", body) as connection,
        connection.typed_tpu() as client,
        pytest.raises(ParseError),
    ):
        client.list_locations({"name": "projects/p"}, timeout=DEADLINE)
