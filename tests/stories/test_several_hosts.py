"""A slice of several hosts as a user meets it: one server over Ray, a report from each worker, and what ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

# Two hosts of four chips each: the least that several hosts can be, of a generation whose memory is not recorded.
TWO = PROFILE.replace("type: v6e-1", "type: v5p-16").replace("[us-east5-a, us-east5-b, europe-west4-a]", "[us-east5-a]")
_STEP = 20
FOUR = PROFILE.replace("type: v6e-1", "type: v6e-16").replace(
    "  max_model_len: 16384\n",
    "  max_model_len: 16384\n  tensor_parallel_size: 4\n  args: {pipeline_parallel_size: 4}\n",
)


def hosts_of(at: CommandLine) -> list[Any]:
    (node,) = at.emulator._cloud.nodes.values()
    return list(node.hosts)


def rays(at: CommandLine) -> list[str]:
    """Return the container of Ray on each host."""
    return [container.id for host in hosts_of(at) for container in host._node.daemon.containers()]


def let_pass(at: CommandLine, seconds: int) -> None:
    """Let time pass in steps, in which the machines do what is due."""
    for _ in range(seconds // _STEP):
        at.clock.sleep(_STEP)
        for host in hosts_of(at):
            host.settle()


def test_apply_serves_over_all_hosts_and_destroy_leaves_nothing(cli: Open) -> None:
    at = cli(nodes="simulated")
    profile = at.write(FOUR)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert at.run("plan", profile, "-detailed-exitcode").code == 0
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


def test_a_changed_flag_leaves_ray_and_a_worker_or_head_that_reboots_comes_back(cli: Open) -> None:
    at = cli(nodes="real")
    profile = at.write(TWO)
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code == 0, applied.all
    assert "Joined Ray, and the server is healthy" in hosts_of(at)[1].log()
    before = rays(at)

    changed = at.run("apply", "-auto-approve", profile, "-set", "serving.max_model_len=8192")
    assert changed.code == 0, changed.all
    assert rays(at) == before
    (server,) = hosts_of(at)[0]._node.daemon._servers.values()
    assert "8192" in server.options.command

    for number in (1, 0):
        hosts_of(at)[number].reboot()
        let_pass(at, 600)
        shown = at.run("status", profile, "-set", "serving.max_model_len=8192")
        assert "a completion came back" in shown.all, (number, shown.all)
    assert not set(rays(at)) & set(before)
    assert at.run("destroy", "-auto-approve", profile).code == 0
    assert not at.slices


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_a_worker_that_never_comes_is_named_and_its_slice_is_kept(cli: Open, nodes: str) -> None:
    at = cli(nodes=nodes, boot={"absent_workers": [1]})
    profile = at.write(TWO + "health: {timeout: 6m}\n")
    applied = at.run("apply", "-auto-approve", profile)
    assert applied.code != 0
    assert "worker 1 of 2: it has not reported yet" in applied.words
    assert "its host is faulty: delete the slice and request another one" in applied.words
    assert list(at.slices.values()) == ["ACTIVE"], "a failed boot keeps its slice"
    shown = json.loads(at.run("status", "-json", profile).out)
    (replica,) = shown["deployments"][0]["replicas"]
    assert replica["boot_detail"] == "worker 1 of 2: it has not reported yet", replica


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("placement.backend=gce-instance",), "bulk groups are not supported yet [TPU1207]"),
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
