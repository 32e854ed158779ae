"""A router in front of the replicas: clients get its address, and it gets the list of those that take requests."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from clients import Client, Reader
from command_line import PROFILE, CommandLine, Open
from ports import free_port
from real_time import DEADLINE
from strict_schema import strict

from tpudeploy.adapters import local_routers
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.domain.router import RouterKind

ROUTER = "router: {kind: haproxy, host: own, address: 10.0.0.1, port: 8080}\n"
TWO = PROFILE + "replicas: 2\n"
URL = "http://10.0.0.1:8080"


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5})
    planned = at.run("plan", at.write(TWO + ROUTER))
    assert f"Router: haproxy at {URL}, 2 replicas behind it (new)." in planned.out
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 0, result.all
    assert f'gemma endpoint = "{URL}"' in result.out
    return at


def document(at: CommandLine) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((at.folder / "endpoints" / "gemma.json").read_text())
    return content


def test_the_endpoint_is_the_router_and_the_list_has_the_replicas(at: CommandLine) -> None:
    endpoint = document(at)
    assert endpoint["url"] == URL
    assert [row["replica"] for row in endpoint["replicas"]] == [0, 1]
    assert len({row["url"] for row in endpoint["replicas"]} | {URL}) == 3
    tree = json.loads(at.run("output", "gemma", "-json").out)
    strict(at, "output").validate(tree)
    assert tree["endpoint"] == URL
    assert tree["router"]["kind"] == "haproxy"

    rendered = at.run("render", "gemma.yaml", "router")
    assert rendered.code == 0, rendered.all
    for row in endpoint["replicas"]:
        assert f"server {row['slice']} {row['url'].removeprefix('http://')}" in rendered.out
    assert "apt-get install haproxy" in rendered.out
    assert "-m tpudeploy router gemma" in rendered.out


def test_metrics_are_those_of_each_replica_and_not_of_the_router(at: CommandLine) -> None:
    tree = json.loads(at.run("metrics", "gemma", "-json").out)
    strict(at, "metrics").validate(tree)
    urls = [row["url"] for row in document(at)["replicas"]]
    assert [(each["address"], each["url"]) for each in tree["replicas"]] == list(
        zip(("gemma[0]", "gemma[1]"), urls, strict=True)
    )
    assert all(each["readings"] for each in tree["replicas"])


def test_a_changed_router_is_a_change_that_the_plan_shows_and_touches_no_server(at: CommandLine) -> None:
    before = document(at)
    at.write(TWO + ROUTER.replace("port: 8080", "port: 8081, policy: roundrobin"))
    planned = at.run("plan", "gemma.yaml")
    assert "router.port" in planned.out
    assert "Plan: 0 to add, 2 to change, 0 to destroy." in planned.out
    line = 'Router: haproxy at http://10.0.0.1:8081, 2 replicas behind it (port 8080 -> 8081, policy null -> "roundrobin").'
    assert line in planned.out
    more = at.run("plan", "gemma.yaml", "-set", "replicas=3", "-set", "router.port=8080", "-set", "router.policy=null")
    assert "Router: haproxy at http://10.0.0.1:8080, 3 replicas behind it.\n" in more.out
    tree = json.loads(at.run("plan", "gemma.yaml", "-json").out)
    strict(at, "plan").validate(tree)
    ports = [tree["goals"][0]["router"][side]["port"] for side in ("before", "after")]
    assert ports == [8080, 8081]
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    after = document(at)
    assert (after["url"], after["router"]["policy"]) == ("http://10.0.0.1:8081", "roundrobin")
    assert after["generation"] > before["generation"]
    assert after["replicas"] == before["replicas"]

    at.write(TWO)
    assert "8081, removed; clients use a replica's address." in at.run("plan", "gemma.yaml").out
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    without = document(at)
    assert "router" not in without
    assert without["url"] == before["replicas"][0]["url"]
    assert without["generation"] > after["generation"]


def test_an_apply_ends_once_a_completion_came_back_through_its_router(cli: Open) -> None:
    if local_routers.find_program("haproxy") is None:
        pytest.skip(f"haproxy is not installed: {ROUTERS[RouterKind.HAPROXY].install}")
    at = cli(boot={"boot_seconds": 5})
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        profile = at.write(TWO + f"router: {{kind: haproxy, port: {port}}}\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local_routers, "ANSWERS_WITHIN", 0.5)
            silent = at.run("apply", "-auto-approve", profile)
        assert silent.code == 13, silent.all
        assert f"no completion comes back through its router at http://127.0.0.1:{port}" in silent.words
        assert "2 added" in silent.words
    try:
        answered = at.run("apply", "-auto-approve", profile)
        assert answered.code == 0, answered.all
        socket.create_connection(("127.0.0.1", port)).close()
    finally:
        at.run("destroy", "-auto-approve", profile)


def test_a_router_whose_next_program_cannot_start_is_an_error_and_the_previous_one_serves(
    cli: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if local_routers.find_program("smg") is None:
        pytest.skip(f"smg is not installed: {ROUTERS[RouterKind.SMG].install}")
    broken = tmp_path / "bin" / "haproxy"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}{os.pathsep}{os.environ['PATH']}")
    at = cli(boot={"boot_seconds": 5})
    port, other = free_port(), free_port()
    profile = at.write(TWO + f"router: {{kind: smg, port: {port}}}\n")
    first = at.run("apply", "-auto-approve", profile)
    assert first.code == 0, first.all
    try:
        monkeypatch.setattr(local_routers, "ANSWERS_WITHIN", 5.0)
        for change in ((), ("-set", f"router.port={other}")):
            changed = at.run("apply", "-auto-approve", profile, "-set", "router.kind=haproxy", *change)
            assert changed.code == 13, changed.all
            assert "haproxy does not take over from" in changed.words
            assert "its program ended with exit code 1" in changed.words
            assert completes(port), changed.all
            assert document(at)["url"] == f"http://127.0.0.1:{port}", "clients keep the address that answers"
    finally:
        at.run("destroy", "-auto-approve", profile)


def completes(port: int) -> bool:
    """Return whether a completion comes back at this port of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    body = json.dumps({"model": "google/gemma-4-E2B-it", "prompt": "Hello", "max_tokens": 1})
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    with closing(connection), connection.getresponse() as response:
        return response.status == 200


def test_a_router_that_comes_moves_or_goes_loses_no_request(cli: Open) -> None:
    """Clients read the endpoint at each moment, and streams of minutes pass through what it was when they began."""
    if local_routers.find_program("haproxy") is None:
        pytest.skip(f"haproxy is not installed: {ROUTERS[RouterKind.HAPROXY].install}")
    at = cli(nodes="simulated", boot={"boot_seconds": 60, "token_seconds": 10})
    port = free_port()
    here = f"router: {{kind: haproxy, port: {port}}}\n"
    on_vm = "router: {kind: KIND, host: vm}\n"
    assert at.run("apply", "-auto-approve", at.write(TWO)).code == 0
    client, hosts = Client(at=at, each=1), []
    at.clock.on_advance.append(client.on_advance)
    try:
        for router in (here, *(on_vm.replace("KIND", kind) for kind in ("smg", "envoy")), here, ""):
            stream = Reader(at, 18)  # three minutes
            changed = at.run("apply", "-auto-approve", at.write(TWO + router))
            assert changed.code == 0, changed.all
            at.clock.sleep(200)
            stream.join()
            assert not stream.error, (router, stream.error)
            assert not client.failed, (router, client.failed)
            assert not client.unserved, router
            hosts.append(document(at).get("router", {}).get("host"))
    finally:
        at.clock.on_advance.remove(client.on_advance)
        destroyed = at.run("destroy", "-auto-approve", "gemma.yaml")
    assert hosts == ["local", "vm", "vm", "local", None]
    assert destroyed.code == 0, destroyed.all
    assert not at.slices


def test_the_own_router_of_a_user_replaces_one_on_a_vm_and_is_replaced_by_one(cli: Open) -> None:
    at = cli(nodes="simulated", boot={"boot_seconds": 60})
    on_vm = "router: {kind: haproxy, host: vm}\nlifecycle: {drain_timeout: 2m}\n"
    own = ROUTER + "lifecycle: {drain_timeout: 2m}\n"
    urls = []
    for router in (on_vm, own, on_vm):
        applied = at.run("apply", "-auto-approve", at.write(TWO + router))
        assert applied.code == 0, applied.all
        endpoint = document(at)
        assert endpoint["url"] == f"http://{endpoint['router']['address']}:{endpoint['router']['port']}"
        assert [row["replica"] for row in endpoint["replicas"]] == [0, 1]
        assert len([name for name in at.slices if "-router-" in name]) == (router is on_vm)
        urls.append(endpoint["url"])
    assert urls[1] == URL
    assert URL not in (urls[0], urls[2])
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert not at.slices


@pytest.mark.polls_every_second(
    "HAProxy finds the second replica in real time, of which fewer observations leave it less"
)
def test_bench_measures_all_replicas_through_their_router(cli: Open) -> None:
    if local_routers.find_program("haproxy") is None:
        pytest.skip(f"haproxy is not installed: {ROUTERS[RouterKind.HAPROXY].install}")
    at = cli(nodes="real", boot={"boot_seconds": 60})
    port = free_port()
    applied = at.run("apply", "-auto-approve", at.write(TWO + f"router: {{kind: haproxy, port: {port}}}\n"))
    assert applied.code == 0, applied.all
    try:
        sweep = ("-concurrency", "4", "-context", "8", "-output", "2", "-window", "200ms")
        result = at.run("bench", "gemma.yaml", *sweep)
        assert result.code == 0, result.all
        assert f"2 x v6e-1, through the router at http://127.0.0.1:{port}" in result.out
        assert "Requests answered by each replica, with those of the warm-up: gemma[0] " in result.out
        run = json.loads(at.run("bench", "gemma.yaml", *sweep, "-json").out)
        subject, (cell,) = run["subject"], run["cells"]
        assert (subject["replicas"], subject["chips"]) == (["gemma[0]", "gemma[1]"], 2)
        assert subject["usd_per_hour"] == pytest.approx(2 * 1.4033, rel=0.5)
        answers = cell["evidence"]["answers"]
        assert min(answers.values()) > 0
        assert sum(answers.values()) >= cell["figures"]["requests"]
        one = json.loads(at.run("bench", "gemma.yaml", *sweep, "-replica", "1", "-json").out)["subject"]
        assert (one["replica"], one["replicas"], one["chips"]) == ("gemma[1]", [], 1)
    finally:
        assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0


def test_bench_says_that_a_router_does_not_run(at: CommandLine) -> None:
    at.write(TWO + ROUTER.replace("10.0.0.1", "127.0.0.1").replace("8080", "1"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    result = at.run("bench", "gemma.yaml")
    assert result.code == 1
    assert "http://127.0.0.1:1 did not answer" in result.err
    assert "--replica 0 measures one replica without it" in result.err


def test_destroy_withdraws_the_router_with_its_replicas(at: CommandLine) -> None:
    planned = at.run("plan", "-destroy", "gemma.yaml")
    assert "Router: haproxy at http://10.0.0.1:8080, deleted with its replicas." in planned.out
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert not (at.folder / "endpoints" / "gemma.json").exists()


def test_without_its_program_a_local_router_is_refused_before_anything_is_requested(
    cli: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at = cli()
    monkeypatch.setattr(local_routers, "_SYSTEM_FOLDERS", ())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    at.write(TWO + ROUTER.replace("host: own", "host: local"))
    for command in ("plan", "apply"):
        result = at.run(command, "gemma.yaml")
        assert result.code == 1
        assert "`haproxy` is not installed on this machine" in result.err
        assert "Install it: apt-get install haproxy" in result.err
    assert not at.slices


def test_a_profile_without_a_router_has_none_to_render(cli: Open) -> None:
    at = cli()
    result = at.run("render", at.write(TWO), "router")
    assert result.code == 1
    assert "The profile of gemma has no router." in result.err


@pytest.mark.parametrize(
    ("router", "message", "place"),
    [
        ("{kind: nginx}", '"nginx" is not one of smg, haproxy, envoy', "router.kind"),
        ("{kind: smg, policy: leastload}", 'smg has no policy "leastload"', "router.policy"),
        (
            "{kind: smg, machine: e2-small}",
            "router.machine is the machine type of a VM, and this router has none",
            "router.machine",
        ),
        ("{kind: smg, host: vm, machine: e2-smal}", '"e2-smal" is not a machine type', "router.machine"),
        ("{kind: smg, host: vm, address: 10.0.0.1}", "Google assigns the address of the router's VM", "router.address"),
        ("{kind: smg, address: router.example.com}", "does not have the required form", "router.address"),
        ("{port: 8080}", 'Missing key "router.kind"', "router"),
    ],
)
def test_a_router_that_cannot_be_run_is_refused_at_its_line(cli: Open, router: str, message: str, place: str) -> None:
    at = cli()
    result = at.run("validate", at.write(f"{TWO}router: {router}\n"))
    assert result.code == 1
    assert message in result.err
    assert f"at {place}" in result.err
