"""No body, however strange, makes the emulator fall over: it is taken or refused as Google refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from emulator.cloud_world import ZONE, World, world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PARENT = f"projects/p/locations/{ZONE}"
SPEC = {"parent": PARENT, "nodeId": "a", "node": {"acceleratorType": "v6e-8", "runtimeVersion": "v2-alpha-tpuv6e"}}
GOOD = {
    "tpu": {"nodeSpec": [SPEC]},
    "provisioningModel": "SPOT",
    "spot": {},
    "runDuration": {"maxRunDuration": "60s"},
    "queueingPolicy": {"validInterval": {"startTime": "2026-01-01T00:00:00Z", "endTime": "2030-01-01T00:00:00Z"}},
}
KEYS = st.sampled_from(
    [
        "tpu",
        "nodeSpec",
        "node",
        "nodeId",
        "parent",
        "metadata",
        "labels",
        "networkConfig",
        "dataDisks",
        "mode",
        "x",
        "multiNodeParams",
        "nodeCount",
        "acceleratorConfig",
        "guaranteed",
        "minDuration",
        "bootDiskConfig",
        "spot",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just("60s")
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)


@pytest.fixture(scope="module")
def shared() -> Iterator[World]:
    with world() as w:
        yield w


def mutated(tree: Any, path: list[int], value: Any) -> Any:
    """`tree` with what lies at the end of `path` replaced by `value`."""
    if not path or not isinstance(tree, dict | list) or not tree:
        return value
    key = list(tree)[path[0] % len(tree)] if isinstance(tree, dict) else path[0] % len(tree)
    changed = mutated(tree[key], path[1:], value)
    return {**tree, key: changed} if isinstance(tree, dict) else [*tree[:key], changed, *tree[key + 1 :]]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.lists(st.integers(0, 6), max_size=6), value=TREES, version=st.sampled_from(["v2", "v2alpha1"]))
def test_any_body_is_taken_or_refused(shared: World, path: list[int], value: Any, version: str) -> None:
    connection = HTTPConnection(shared.emulator.host)
    try:
        body = json.dumps(mutated(GOOD, path, value))
        connection.request("POST", f"/{version}/{PARENT}/queuedResources?queuedResourceId=a", body)
        reply = connection.getresponse()
        output = json.loads(reply.read())
        assert reply.status in (200, 400, 409), output
        shared.clock.sleep(1)
        connection.request(
            "PATCH", f"/{version}/{PARENT}/nodes/a?updateMask=metadata,networkConfig.enableExternalIps", body
        )
        assert connection.getresponse().status in (200, 400, 404)
    finally:
        connection.close()
