"""A router on a VM: it comes with the first replica, follows the list of replicas, and leaves with the last one."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any
from urllib.request import Request, urlopen

import pytest
from clients import Client, Reader, complete
from command_line import PROFILE, CommandLine, Open

ROUTER = "replicas: 2\nrouter: {kind: KIND, host: vm}\n"
TWO = PROFILE + ROUTER.replace("KIND", "haproxy")


def applied(cli: Open, text: str = TWO, nodes: str = "simulated", **scenario: Any) -> CommandLine:
    at = cli(**{"nodes": nodes, "boot": {"boot_seconds": 60}, **scenario})
    result = at.run("apply", "-auto-approve", at.write(text))
    assert result.code == 0, result.all
    return at


def document(at: CommandLine) -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((at.folder / "endpoints" / "gemma.json").read_text())
    return content


def machines(at: CommandLine) -> list[str]:
    return [name for name in at.slices if "-router-" in name]


def destroyed(at: CommandLine) -> None:
    result = at.run("destroy", "-auto-approve", "gemma.yaml")
    assert result.code == 0, result.all
    assert not at.slices
    assert not (at.folder / "endpoints" / "gemma.json").exists()


@pytest.mark.parametrize(
    ("kind", "nodes"), [("haproxy", "simulated"), ("haproxy", "real"), ("smg", "real"), ("envoy", "real")]
)
def test_apply_ends_with_a_completion_through_the_router_and_destroy_leaves_nothing(
    cli: Open, kind: str, nodes: str
) -> None:
    at = applied(cli, PROFILE + ROUTER.replace("KIND", kind), nodes)
    endpoint = document(at)
    assert endpoint["router"]["host"] == "vm"
    assert endpoint["url"].endswith(":8080")
    assert endpoint["url"] not in {row["url"] for row in endpoint["replicas"]}
    complete(endpoint["url"])
    at.clock.sleep(60)  # a machine writes a report every ten seconds at most
    unchanged = at.run("plan", "gemma.yaml", "-detailed-exitcode")
    assert unchanged.code == 0, unchanged.all
    assert at.run("drift", "gemma.yaml").code == 0
    status = at.run("status", "gemma.yaml")
    assert "gemma[router]  serving" in status.out
    assert "(e2-small, us-east5-a, on-demand, gce-instance)" in status.out
    destroyed(at)


def _hidden(seconds: float) -> Mapping[str, Any]:
    return {"fault": "hidden-after-operation", "seconds": seconds, "times": 1, "name": "*-router-*"}


def test_a_vm_that_is_seen_late_is_requested_once(cli: Open) -> None:
    at = applied(cli, trouble=[_hidden(90)])
    requests = [r for r in at.emulator.requests if r.method == "POST" and r.resource.endswith("/instances")]
    assert len(requests) == len(machines(at)) == 1
    unchanged = at.run("plan", "gemma.yaml", "-detailed-exitcode")
    assert unchanged.code == 0, unchanged.all
    destroyed(at)


@pytest.mark.parametrize("end", ["gc", "destroy"])
def test_a_vm_that_appears_after_it_was_forgotten_is_named_and_deleted(cli: Open, end: str) -> None:
    at = applied(cli, trouble=[_hidden(400)])
    at.clock.sleep(1800)
    status = at.run("status", "gemma.yaml")
    (late,) = [name for name in machines(at) if f"{name} (us-east5-a" in status.words]
    assert "To delete it: tpudeploy gc" in status.words
    if end == "gc":
        assert at.run("gc", "-auto-approve", "gemma.yaml").code == 0
        assert len(machines(at)) == 1
        assert late not in machines(at)
        complete(document(at)["url"])
    destroyed(at)


def test_the_plan_shows_the_vm_with_its_price(cli: Open) -> None:
    at = cli(nodes="simulated")
    result = at.run("plan", at.write(TWO))
    assert 'vm.machine = "e2-small"' in result.out
    assert "about $0.02/h (1 of 3 prices unknown) at list price once granted" in result.out
    assert "Plan: 3 to add, 0 to change, 0 to destroy." in result.out
    assert "Router: haproxy on a VM (e2-small), at its port 8080, 2 replicas behind it (new)." in result.out
    tree = json.loads(at.run("plan", "gemma.yaml", "-json").out)
    (row,) = [row for row in tree["resource_changes"] if row["type"] == "tpudeploy_router"]
    assert row["address"] == "gemma[router]"


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_a_replica_leaves_the_list_of_the_vm_before_its_server_is_changed(cli: Open, nodes: str) -> None:
    at = applied(cli, nodes=nodes)
    client = Client(at=at, each=1, waits=True)
    at.clock.on_advance.append(client.on_advance)
    at.write(TWO.replace("16384", "8192"))
    changed = at.run("apply", "-auto-approve", "gemma.yaml")
    assert changed.code == 0, changed.all
    assert "2 restarted" in changed.out
    assert not client.failed, client.failed
    assert client.requests_by_url.keys() == {document(at)["url"]}
    assert len(machines(at)) == 1


def test_a_vm_that_is_deleted_by_hand_is_drift_and_is_made_again(cli: Open) -> None:
    at = applied(cli)
    before, (name,) = document(at), machines(at)
    url = f"http://{at.emulator.host}/compute/v1/projects/emulated/zones/us-east5-a/instances/{name}"
    urlopen(Request(url, method="DELETE")).close()
    at.clock.sleep(600)
    drift = at.run("drift", "gemma.yaml")
    assert drift.code == 2, drift.all
    assert "gemma[router]" in drift.out
    again = at.run("apply", "-auto-approve", "gemma.yaml")
    assert again.code == 0, again.all
    assert "1 added, 0 changed, 0 destroyed" in again.out
    assert machines(at) != [name]
    complete(document(at)["url"])
    assert document(at)["generation"] > before["generation"]


def test_another_port_is_another_vm_that_serves_before_the_first_one_goes(cli: Open) -> None:
    at = applied(cli)
    client = Client(at=at, each=1, waits=True)
    at.clock.on_advance.append(client.on_advance)
    at.write(TWO.replace("host: vm", "host: vm, port: 9090, machine: e2-medium"))
    replaced = at.run("apply", "-auto-approve", "gemma.yaml")
    assert replaced.code == 0, replaced.all
    assert "gemma[router] must be replaced" in replaced.out
    assert 'vm.machine = "e2-small" -> "e2-medium" # forces replacement' in replaced.out
    assert not client.failed, client.failed
    assert document(at)["url"].endswith(":9090")
    assert len(machines(at)) == 1


def test_without_the_router_clients_get_a_replica_and_the_vm_goes(cli: Open) -> None:
    at = applied(cli)
    at.write(PROFILE + "replicas: 2\nlifecycle: {drain_timeout: 2m}\n")
    removed = at.run("apply", "-auto-approve", "gemma.yaml")
    assert removed.code == 0, removed.all
    assert "gemma[router] will be destroyed" in removed.out
    assert "the profile has no router on a VM" in removed.out
    assert not machines(at)
    assert document(at)["url"] == document(at)["replicas"][0]["url"]


@pytest.mark.parametrize("tokens", [0, 30])
def test_a_vm_that_is_removed_goes_once_nothing_runs_at_any_replica(cli: Open, tokens: int) -> None:
    at = applied(cli, boot={"boot_seconds": 60, "token_seconds": 10})
    stream = Reader(at, tokens) if tokens else None
    at.write(PROFILE + "replicas: 2\n")
    began = at.clock.now()
    removed = at.run("apply", "-auto-approve", "gemma.yaml")
    assert removed.code == 0, removed.all
    assert not machines(at)
    assert began + tokens * 10 <= at.clock.now() < began + 600
    if stream is not None:
        stream.join()
        assert not stream.error


def test_the_vm_can_be_destroyed_by_its_address(cli: Open) -> None:
    at = applied(cli)
    removed = at.run("destroy", "-auto-approve", "-target", "gemma[router]", "gemma.yaml")
    assert removed.code == 0, removed.all
    assert not machines(at)
    assert len(at.slices) == 2
    assert "router" not in document(at)
    complete(document(at)["url"])
    again = at.run("apply", "-auto-approve", "gemma.yaml")
    assert again.code == 0, again.all
    complete(document(at)["url"])
    assert "router" in document(at)


def test_a_part_that_is_destroyed_leaves_the_list_of_the_vm(cli: Open) -> None:
    at = applied(cli)
    client = Client(at=at, each=1, waits=True)
    at.clock.on_advance.append(client.on_advance)
    removed = at.run("destroy", "-auto-approve", "-target", "gemma[1]", "gemma.yaml")
    assert removed.code == 0, removed.all
    assert not client.failed, client.failed
    assert len(machines(at)) == 1
    assert [row["replica"] for row in document(at)["replicas"]] == [0]
    at.clock.on_advance.remove(client.on_advance)
    destroyed(at)


def test_where_there_is_no_machine_the_next_zone_is_asked(cli: Open) -> None:
    at = applied(cli, trouble=[{"fault": "stockout", "type": "e2-small", "zone": "us-east5-a"}])
    (name,) = machines(at)
    assert "us-east5-b" in at.run("state", "show", "gemma[router]").out
    # It stays where it is.
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0
    replaced = at.run("apply", "-auto-approve", "-replace", "gemma[router]", "gemma.yaml")
    assert replaced.code == 0, replaced.all
    assert machines(at) != [name]


def test_without_its_state_the_vm_is_found_adopted_or_collected(cli: Open) -> None:
    at = applied(cli)
    (name,) = machines(at)
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    planned = at.run("plan", "gemma.yaml")
    assert planned.code == 13, planned.all
    assert name in planned.all
    adopted = at.run("apply", "-auto-approve", "-adopt", "gemma.yaml")
    assert adopted.code == 0, adopted.all
    assert machines(at) == [name]
    complete(document(at)["url"])
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    collected = at.run("gc", "-auto-approve", "-foreign", "gemma.yaml")
    assert collected.code == 0, collected.all
    assert not at.slices


@pytest.mark.parametrize("kind", ["haproxy", "smg", "envoy"])
def test_the_script_of_the_vm_is_rendered_and_shellcheck_has_nothing_to_say(cli: Open, kind: str) -> None:
    at = cli()
    text = PROFILE.replace("HF_TOKEN: hf-token", "VLLM_API_KEY: vllm-key") + ROUTER.replace("KIND", kind)
    rendered = at.run("render", at.write(text), "router")
    assert rendered.code == 0, rendered.all
    assert "secret_resources=(secrets/vllm-key/versions/latest)" in rendered.out
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck (Debian: apt-get install shellcheck)")
    checked = subprocess.run(["shellcheck", "-"], input=rendered.out, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_router_on_a_vm_is_not_run_here_too(cli: Open) -> None:
    at = applied(cli)
    result = at.run("router", "gemma")
    assert result.code == 1
    assert "The router of gemma runs on a VM" in result.err


@pytest.mark.parametrize("nodes", ["simulated", "real"])
@pytest.mark.parametrize("lifecycle", ["end: 3h", "idle: 30m"])
def test_the_vm_ends_with_its_deployment_when_nobody_is_there(cli: Open, lifecycle: str, nodes: str) -> None:
    at = applied(cli, f"{TWO.replace('replicas: 2', 'replicas: 1')}lifecycle: {{{lifecycle}}}\n", nodes)
    for _ in range(25):
        at.clock.sleep(60)
    assert len(machines(at)) == 1
    for _ in range(200):
        at.clock.sleep(60)
    assert not at.emulator.billed()
    assert not machines(at)
    ended = at.run("apply", "-auto-approve", "gemma.yaml")
    assert ended.code == 0, ended.all
    assert "No changes." in at.run("plan", "gemma.yaml").out
    assert not at.slices


def test_the_vm_of_several_replicas_ends_at_the_end_of_its_deployment(cli: Open) -> None:
    at = applied(cli, f"{TWO}lifecycle: {{end: 3h, idle: 30m}}\n")
    for _ in range(60):
        at.clock.sleep(60)
    assert len(machines(at)) == 1
    for _ in range(130):
        at.clock.sleep(60)
    assert not at.emulator.billed()
    assert not machines(at)
