"""A slice of several hosts as a user meets it: one server over Ray, a report from each worker, and what ends it."""

from __future__ import annotations

import json
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open
from real_time import DEADLINE

# Two hosts of four chips each: the least that several hosts can be, of a generation whose memory is not recorded.
TWO = PROFILE.replace("type: v6e-1", "type: v5p-16").replace("[us-east5-a, us-east5-b, europe-west4-a]", "[us-east5-a]")
_STEP = 20
_SHORTER = ("-set", "serving.max_model_len=8192")
FOUR = PROFILE.replace("type: v6e-1", "type: v6e-16").replace(
    "  max_model_len: 16384\n",
    "  max_model_len: 16384\n  tensor_parallel_size: 4\n  args: {pipeline_parallel_size: 4}\n",
)


# The same slices as groups of instances at Compute Engine.
TWO_INSTANCES, FOUR_INSTANCES = (
    text.replace("placement:\n", "placement:\n  backend: gce-instance\n") for text in (TWO, FOUR)
)
EITHER = pytest.mark.parametrize("text", [TWO, TWO_INSTANCES], ids=["queued-resource", "gce-instance"])


def hosts_of(at: CommandLine) -> list[Any]:
    cloud = at.emulator._cloud
    nodes = [node.hosts for node in cloud.nodes.values()]
    instances = sorted(cloud.instances.values(), key=lambda instance: instance.id)
    return next(iter(nodes), [instance.host for instance in instances])


def rays(at: CommandLine) -> list[str]:
    """Return the container of Ray on each host."""
    return [container.id for host in hosts_of(at) for container in host._node.daemon.containers()]


def server_of(at: CommandLine) -> Any:
    """Return the server, a process in the container of worker 0."""
    (server,) = hosts_of(at)[0]._node.daemon._servers.values()
    return server


def set_behaviour(at: CommandLine, **behaviour: object) -> None:
    daemon = hosts_of(at)[0]._node.daemon
    daemon._behaviour = replace(daemon._behaviour, **behaviour)


def has_started(at: CommandLine, word: str) -> bool:
    servers = tuple(hosts_of(at)[0]._node.daemon._servers.values())
    return any(word in server.options.command for server in servers)


def delete_in_region(at: CommandLine, kind: str, name: str) -> None:
    """Delete a regional resource of Compute Engine as another tool would, and wait until it is gone."""
    path = f"/compute/v1/projects/emulated/regions/us-east5/{kind}/{name}"
    connection = HTTPConnection(at.emulator.host, timeout=DEADLINE)
    try:
        connection.request("DELETE", path)
        assert connection.getresponse().status == 200
    finally:
        connection.close()
    at.clock.sleep(600)


def let_pass(at: CommandLine, seconds: int, *, but: Any = None) -> None:
    """Let time pass in steps, in which the machines, but for one that is off, do what is due."""
    for _ in range(seconds // _STEP):
        at.clock.sleep(_STEP)
        for host in hosts_of(at):
            if host is not but:
                host.settle()


@pytest.mark.parametrize("text", [FOUR, FOUR_INSTANCES], ids=["queued-resource", "gce-instance"])
def test_apply_serves_over_all_hosts_and_destroy_leaves_nothing(cli: Open, text: str) -> None:
    at = cli(nodes="simulated")
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


@EITHER
def test_a_changed_flag_ends_the_server_and_leaves_ray_on_all_hosts(cli: Open, text: str) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write(text)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "Joined Ray, and the server is healthy" in hosts_of(at)[1].log()
    before = rays(at)

    changed = at.run("apply", "-auto-approve", profile, *_SHORTER)
    assert changed.code == 0, changed.all
    assert rays(at) == before
    assert "8192" in server_of(at).options.command
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


@pytest.mark.long
@EITHER
def test_a_worker_or_a_head_that_reboots_is_taken_in_again(cli: Open, text: str) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write(text)
    assert at.run("apply", "-auto-approve", profile).code == 0
    before = rays(at)
    for number in (1, 0):
        hosts_of(at)[number].reboot()
        let_pass(at, 400)
        shown = at.run("status", profile)
        assert "a completion came back" in shown.all, (number, shown.all)
    assert not set(rays(at)) & set(before)


@pytest.mark.long
@EITHER
def test_a_ray_that_dies_on_the_head_is_started_again_and_the_others_join_it(cli: Open, text: str) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write(text)
    assert at.run("apply", "-auto-approve", profile).code == 0
    before = rays(at)
    hosts_of(at)[0]._node.daemon.kill_all()
    let_pass(at, 60)
    assert "a completion came back" not in at.run("status", profile).words
    let_pass(at, 340)
    shown = at.run("status", profile)
    assert "a completion came back" in shown.words, shown.all
    assert not set(rays(at)) & set(before)


@pytest.mark.long
@EITHER
@pytest.mark.parametrize(
    ("number", "message", "what"),
    [
        (0, "worker 1 of 2: Ray of worker 0 did not listen at", "A worker of the slice did not reach worker 0"),
        (1, "did not join Ray", "A worker of the slice did not join the others"),
    ],
    ids=["head", "worker"],
)
def test_a_machine_that_dies_for_good_is_named_and_one_command_requests_another_slice(
    cli: Open, text: str, number: int, message: str, what: str
) -> None:
    """The cloud lists its machine as before: only the others notice."""
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write(text + "health: {timeout: 4m}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    dead = hosts_of(at)[number]
    dead.power_off()
    let_pass(at, 900, but=dead)
    shown = at.run("status", profile).words
    assert "up, not serving" in shown
    assert "failed:" in shown
    assert message in shown
    explained = at.run("logs", "-explain", profile).words
    assert what in explained
    assert "`tpudeploy apply -replace" in explained
    drift = at.run("drift", profile)
    assert drift.code == 2
    assert "`tpudeploy apply -replace 'gemma[0]'` requests another slice" in drift.words
    replaced = at.run("apply", "-auto-approve", "-replace", "gemma[0]", profile)
    assert replaced.code == 0, replaced.all
    assert len(at.slices) == 1
    assert name not in at.slices


@pytest.mark.long
@EITHER
def test_a_head_that_comes_back_after_the_others_gave_up_serves_after_one_apply(cli: Open, text: str) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write(text + "health: {timeout: 4m}\n")
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    head = hosts_of(at)[0]
    head.power_off()
    let_pass(at, 900, but=head)
    head.power_on()
    let_pass(at, 60)
    assert at.run("apply", "-refresh-only", "-auto-approve", profile).code == 0
    restarted = at.run("apply", "-auto-approve", profile)
    assert restarted.code == 0, restarted.all
    assert list(at.slices) == [name]


def test_a_worker_that_is_deleted_by_hand_takes_its_slice_with_it_and_apply_requests_another_one(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write(FOUR_INSTANCES)
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    at.emulator.delete_instance(f"{name}-w-3")
    at.clock.sleep(300)
    assert "3 of 4 workers run" in at.run("status", profile).words
    planned = at.run("plan", profile, "-detailed-exitcode")
    assert planned.code == 2, planned.all
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert list(at.slices.values()) == ["RUNNING"]
    assert name not in at.slices
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


@pytest.mark.parametrize("after", [48.0, 70.0, 100.0, 200.0])
def test_a_group_of_a_run_that_was_killed_is_continued_or_replaced_and_there_is_one_slice(
    cli: Open, after: float
) -> None:
    """The moments: the group is requested, it waits for capacity, its machines start, its server starts."""
    at = cli(nodes="simulated")
    profile = at.write(FOUR_INSTANCES)
    at.killed(after, "apply", "-auto-approve", profile)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    at.clock.sleep(600)
    assert list(at.slices.values()) == ["RUNNING"]
    assert len(at.emulator.billed()) == 1
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


@pytest.mark.parametrize("part", ["resourcePolicies", "regionInstanceTemplates", "regionInstanceGroupManagers"])
@pytest.mark.parametrize("fault", ["lost-reply", "connection-refused", "stockout"])
def test_a_request_for_a_part_of_a_group_that_fails_leaves_one_slice_and_nothing_beside_it(
    cli: Open, part: str, fault: str
) -> None:
    layer = {"layer": "L1"} if fault == "stockout" else {}
    at = cli(nodes="simulated", trouble=[{"fault": fault, "method": f"compute.{part}.insert", "times": 1, **layer}])
    profile = at.write(FOUR_INSTANCES)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert list(at.slices.values()) == ["RUNNING"]
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


def test_gc_deletes_a_group_that_no_state_tracks_as_one_slice_with_its_policy_and_its_template(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write(FOUR_INSTANCES)
    assert at.run("apply", "-auto-approve", profile).code == 0
    assert at.run("drift", profile).code == 0
    (name,) = at.slices
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    listed = at.run("gc", "-foreign")
    assert listed.all.count(name) >= 1
    assert f"{name}-w-1" not in listed.all
    removed = at.run("gc", "-foreign", "-auto-approve")
    assert removed.code == 0, removed.all
    assert not at.slices


@pytest.mark.parametrize(
    "path", ["NAME", "us-east5-a/NAME", "projects/emulated/regions/us-east5/instanceGroupManagers/NAME"]
)
def test_a_group_can_be_imported_by_its_name_and_by_its_path(cli: Open, path: str) -> None:
    at = cli(nodes="simulated")
    profile = at.write(FOUR_INSTANCES)
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    imported = at.run("import", "gemma[0]", path.replace("NAME", name), "-foreign")
    assert imported.code == 0, imported.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("state", "rm", "-auto-approve", "gemma").code == 0
    generated = at.run("import", "other[0]", path.replace("NAME", name), "-foreign", "-generate", "-model", "a/b")
    assert generated.code == 0, generated.all
    text = (at.folder / "other.yaml").read_text("utf-8")
    assert 'type: "v6e-16"' in text
    assert "gce-instance" in text


def test_gc_deletes_a_template_that_alone_is_left_of_a_group(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write(FOUR_INSTANCES)
    assert at.run("apply", "-auto-approve", profile).code == 0
    (name,) = at.slices
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()
    for kind in ("instanceGroupManagers", "resourcePolicies"):
        delete_in_region(at, kind, name)
    assert dict(at.slices) == {name: "LEFT"}
    listed = at.run("gc", "-foreign")
    assert listed.all.count(name) >= 1, listed.all
    removed = at.run("gc", "-foreign", "-auto-approve")
    assert removed.code == 0, removed.all
    assert not at.slices


@pytest.mark.long
def test_a_change_that_fails_is_undone_and_one_of_the_container_replaces_it_on_all_hosts(cli: Open) -> None:
    at = cli(nodes="real", boot={"boot_seconds": 30})
    profile = at.write(TWO)
    assert at.run("apply", "-auto-approve", profile).code == 0
    before = rays(at)
    set_behaviour(at, crash="ValueError: no such shape")
    # A server has its fate from its start, and takes time to meet it: the one before, started after it, has no such fate.
    at.clock.on_advance.append(lambda: set_behaviour(at, crash="") if has_started(at, "8192") else None)
    failed = at.run("apply", "-auto-approve", profile, *_SHORTER)
    assert failed.code != 0
    assert "runs the previous server again, because the change failed" in failed.words
    assert "no such shape" in failed.words
    assert rays(at) == before
    assert "16384" in server_of(at).options.command

    changed = at.run("apply", "-auto-approve", profile, "-set", "serving.env.GREETING=hello")
    assert changed.code == 0, changed.all
    assert not set(rays(at)) & set(before)
    assert server_of(at).environment["GREETING"] == "hello"


@EITHER
@pytest.mark.parametrize("nodes", ["simulated", pytest.param("real", marks=pytest.mark.long)])
def test_a_worker_that_never_comes_is_named_and_its_slice_is_kept(cli: Open, nodes: str, text: str) -> None:
    at = cli(nodes=nodes, boot={"absent_workers": [1]})
    profile = at.write(text + "health: {timeout: 6m}\n")
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code != 0
    assert "worker 1 of 2: it has not reported yet" in applied.words
    assert "its host is faulty: delete the slice and request another one" in applied.words
    assert list(at.slices.values()) in (["ACTIVE"], ["RUNNING"]), "a failed boot keeps its slice"
    shown = json.loads(at.run("status", "-json", profile).out)
    (replica,) = shown["deployments"][0]["replicas"]
    assert replica["boot_detail"] == "worker 1 of 2: it has not reported yet", replica
    examined = at.run("doctor", profile)
    assert "worker 1: it has not reported yet" in examined.words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("serving.data_parallel_size=4", "serving.args=null"), "one copy spans its 4 hosts [TPU1207]"),
        (("serving.args=null",), "4 of the 16 chips of v6e-16 are used, and all 4 hosts are needed [TPU1302]"),
        (
            ("serving.tensor_parallel_size=2", "serving.args.pipeline_parallel_size=8"),
            "8 stages do not divide the 4 hosts of v6e-16: a stage has whole hosts [TPU1302]",
        ),
        (
            ("serving.tensor_parallel_size=8", "serving.args.pipeline_parallel_size=2"),
            "Tensor parallelism over 2 hosts of v6e is not in vLLM's tests [TPU1307]",
        ),
    ],
)
def test_a_shape_that_several_hosts_cannot_have_or_nobody_tests_is_said_before_anything_is_asked(
    cli: Open, changes: tuple[str, ...], words: str
) -> None:
    at = cli()
    sets = [word for change in changes for word in ("-set", change)]
    result = at.run("validate", at.write(FOUR), *sets)
    assert words in result.words
    assert result.all.count(words.split("[")[1]) == 1, result.all
    assert not at.emulator.requests
