"""What a router reads: the replicas on the list and no other, in a form that the router itself accepts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tpudeploy.adapters.local_routers import find_program
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.router import (
    RoutedReplica,
    Router,
    RouterHost,
    RouterKind,
    published_replicas,
    published_router,
)
from tpudeploy.node.router_configuration import configuration

TWO = (
    RoutedReplica(name="gemma-0-0", url="http://10.0.0.5:8000"),
    RoutedReplica(name="gemma-1-1", url="http://10.0.0.6:8001"),
)
# How each program checks a configuration without running it. smg has no such option: it is run in test_real_routers.py.
CHECKS = {RouterKind.HAPROXY: ("-c", "-f", "haproxy.cfg"), RouterKind.ENVOY: ("--mode", "validate", "-c", "envoy.json")}


def router(kind: RouterKind, policy: str | None = None) -> Router:
    return Router(kind=kind, host=RouterHost.OWN, address="10.0.0.1", port=8080, policy=policy, model="org/model")


def test_smg_reads_the_address_and_the_model_of_each_replica() -> None:
    files = configuration(router(RouterKind.SMG), TWO, "gemma").files
    assert json.loads(files["workers.json"]) == {
        "version": 1,
        "workers": [
            {"id": "gemma-0-0", "url": "http://10.0.0.5:8000", "model_id": "org/model"},
            {"id": "gemma-1-1", "url": "http://10.0.0.6:8001", "model_id": "org/model"},
        ],
    }


def test_haproxy_has_one_server_for_each_replica() -> None:
    text = configuration(router(RouterKind.HAPROXY), TWO, "gemma").files["haproxy.cfg"]
    servers = [line.split() for line in text.splitlines() if line.split()[:1] == ["server"]]
    assert servers == [["server", "gemma-0-0", "10.0.0.5:8000"], ["server", "gemma-1-1", "10.0.0.6:8001"]]


def test_envoy_has_one_endpoint_for_each_replica() -> None:
    files = configuration(router(RouterKind.ENVOY), TWO, "gemma").files
    groups = json.loads(files["endpoints/replicas.json"])["resources"][0]["endpoints"]
    addresses = [each["endpoint"]["address"]["socket_address"] for group in groups for each in group["lb_endpoints"]]
    assert addresses == [{"address": "10.0.0.5", "port_value": 8000}, {"address": "10.0.0.6", "port_value": 8001}]


@pytest.mark.parametrize("kind", RouterKind)
def test_a_change_of_the_list_changes_only_the_file_that_is_read_again(kind: RouterKind) -> None:
    before, after = (configuration(router(kind), replicas, "gemma") for replicas in (TWO, TWO[:1]))
    changed = {path for path, text in before.files.items() if after.files[path] != text}
    assert changed == {before.watched or before.reloaded}
    assert before.command == after.command


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("replicas", [TWO, ()], ids=["two replicas", "no replica"])
def test_the_router_accepts_its_configuration_with_each_policy(
    kind: RouterKind, replicas: tuple[RoutedReplica, ...], tmp_path: Path
) -> None:
    program = find_program(ROUTERS[kind].program)
    if program is None:
        pytest.skip(f"{ROUTERS[kind].program} is not installed: {ROUTERS[kind].install}")
    for policy in ROUTERS[kind].policies:
        for path, text in configuration(router(kind, policy), replicas, "gemma").files.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text)
        check = subprocess.run([program, *CHECKS[kind]], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert check.returncode == 0, (policy, check.stdout + check.stderr)


@pytest.mark.parametrize("kind", RouterKind)
def test_the_endpoint_document_gives_back_the_router_that_it_was_given(kind: RouterKind) -> None:
    for one in (router(kind), router(kind, ROUTERS[kind].policies[-1])):
        document = json.loads(json.dumps({"url": one.url, "router": one.to_dict()}))
        assert published_router(document) == one
        assert published_replicas(document) == ()


@pytest.mark.parametrize("row", ["haproxy", {"kind": "nginx"}, {"kind": "smg"}, 8080], ids=str)
def test_a_router_of_a_later_version_is_not_misread(row: object) -> None:
    with pytest.raises(ValueError, match=r"router|nginx"):
        published_router({"url": "http://10.0.0.1:8080", "router": row})
