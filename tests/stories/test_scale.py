"""The number of replicas: which one leaves, which ones are not preempted, and how their load changes it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from clients import Router, load, lost_nothing, replica_urls
from command_line import PROFILE, CommandLine, Open, Result
from strict_schema import strict

MINUTE, HOUR = 60.0, 3600.0
APPLY = ("apply", "-auto-approve", "gemma.yaml")
WATCH = ("apply", "-auto-approve", "-watch", "gemma.yaml")
FLOOR = PROFILE.replace("[spot]", "[spot]\n  on_demand_floor: 1")
SCALE = "scale: {max: 3, waiting: 4, kv_cache: 0.8, cooldown: 10m}\n"
IDLE = {"num_requests_running": 0, "num_requests_waiting": 0, "kv_cache_usage_perc": 0.1}
BUSY = {"num_requests_running": 200, "num_requests_waiting": 9, "kv_cache_usage_perc": 0.6}


def models(at: CommandLine) -> dict[int, str]:
    """Return the provisioning model of each replica's slice."""
    return {r["index"]: a["provisioning"] for r in at.state()["records"] for a in r["attempts"]}


def test_more_replicas_touch_no_other_and_fewer_lose_the_one_that_does_not_serve(cli: Open) -> None:
    at: CommandLine = cli(boot={"boot_seconds": 60})
    at.write(PROFILE + "replicas: 2\n")
    assert at.run(*APPLY).code == 0
    before = json.dumps([record["attempts"] for record in at.state()["records"]])
    planned = at.run("plan", "gemma.yaml", "-set", "replicas=3")
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in planned.out
    assert "# gemma[0]" not in planned.out
    assert at.run(*APPLY, "-set", "replicas=3").code == 0
    assert json.dumps([record["attempts"] for record in at.state()["records"][:2]]) == before

    (middle,) = at.state()["records"][1]["attempts"]
    at.emulator.preempt(middle["name"])
    both = at.run("plan", "gemma.yaml", "-set", "replicas=3", "-set", "serving.max_model_len=8192")
    assert both.words.count("it waits until gemma[1] serves (lifecycle.max_unavailable: 1)") == 2
    planned = at.run("plan", "gemma.yaml")
    assert "gemma[1] will be destroyed" in planned.out
    assert "Plan: 0 to add, 0 to change, 1 to destroy." in planned.out
    assert at.run(*APPLY).code == 0
    assert sorted(models(at)) == [0, 2]
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0
    assert "gemma[2] serving" in at.run("status", "gemma.yaml").words
    assert at.run("verify", "gemma.yaml").code == 0

    assert at.run(*APPLY, "-set", "replicas=3").code == 0
    assert sorted(models(at)) == [0, 1, 2]
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert not at.slices


def test_a_floor_keeps_some_replicas_on_demand_and_a_change_of_it_replaces_only_those(cli: Open) -> None:
    at: CommandLine = cli(boot={"boot_seconds": 60})
    at.write(FLOOR + "replicas: 3\n")
    planned = at.run("plan", "gemma.yaml")
    assert planned.words.count('placement.provisioning = ["on-demand"]') == 1
    assert planned.words.count('placement.provisioning = ["spot"]') == 2
    assert "about $2.70/h" in planned.words, "the first one has the price of on-demand"
    assert at.run(*APPLY).code == 0
    assert models(at) == {0: "on-demand", 1: "spot", 2: "spot"}
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0
    names = {r["index"]: r["attempts"][0]["name"] for r in at.state()["records"]}

    at.write((FLOOR + "replicas: 3\n").replace("floor: 1", "floor: 2"))
    planned = at.run("plan", "gemma.yaml")
    assert 'placement.provisioning = ["spot"] -> ["on-demand"] # forces replacement' in planned.words
    assert "Plan: 1 to add, 2 to change, 1 to destroy." in planned.out
    assert at.run(*APPLY).code == 0
    assert models(at) == {0: "on-demand", 1: "on-demand", 2: "spot"}
    after = {r["index"]: r["attempts"][0]["name"] for r in at.state()["records"]}
    assert [index for index in names if names[index] != after[index]] == [1]

    # A preempted spot slice goes first, and the floor stays.
    assert at.run(*APPLY, "-set", "replicas=2").code == 0
    assert models(at) == {0: "on-demand", 1: "on-demand"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scale: {min: 3, max: 2}\n", "scale.min: 3 is more than scale.max: 2"),
        ("scale: {max: 2}\nreplicas: 3\n", "replicas: 3 is outside of the bounds of scale, 1 to 2"),
        ("scale: {min: 2}\n", 'Missing key "scale.max"'),
        ("scale: {max: 2, kv_cache: 1.5}\n", "kv_cache"),
    ],
)
def test_bounds_that_cannot_be_kept_are_refused(cli: Open, text: str, message: str) -> None:
    at = cli()
    result = at.run("validate", at.write(PROFILE + text))
    assert result.code == 1
    assert message in result.err


def test_a_floor_above_the_number_of_replicas_is_refused(cli: Open) -> None:
    at = cli()
    assert "placement.on_demand_floor: 1 is more than" not in at.run("validate", at.write(FLOOR)).all
    result = at.run("validate", at.write(FLOOR.replace("floor: 1", "floor: 2")))
    assert result.code == 1
    assert "placement.on_demand_floor: 2 is more than replicas: 1" in result.err


def watch(at: CommandLine, is_over: Callable[[], bool], limit: float = 4 * HOUR) -> Result:
    """Run `apply -watch` until a condition holds, and interrupt it then."""
    ends = at.clock.now() + limit

    def on_advance() -> None:
        if is_over() or at.clock.now() > ends:
            raise KeyboardInterrupt

    at.clock.on_advance.append(on_advance)
    try:
        result = at.run(*WATCH)
    finally:
        at.clock.on_advance.remove(on_advance)
    assert result.code == 130, result.all
    assert at.clock.now() <= ends, result.all
    return result


def test_load_adds_a_replica_and_its_end_removes_it_after_the_cool_down(cli: Open) -> None:
    at: CommandLine = cli(boot={"boot_seconds": 60, "load": IDLE})
    at.write(PROFILE + SCALE)
    planned = at.run("plan", "gemma.yaml")
    assert "Scale: 1 to 3 replicas, 1 to begin with, at most $" in planned.out
    tree = json.loads(at.run("plan", "gemma.yaml", "-json").out)
    strict(at, "plan").validate(tree)
    assert tree["goals"][0]["scale"]["max"] == 3
    began = at.clock.now()
    watch(at, lambda: len(replica_urls(at)) == 1 and at.clock.now() > began + HOUR)
    assert "scaled" not in at.state(), "an idle replica needs no other, and there is always one"

    at.emulator.set_load(**BUSY)
    # Killed after the decision: the next run continues with it, and needs no approval.
    at.killed(3 * MINUTE, *WATCH)
    assert at.state()["scaled"]["after"] == 2
    assert len(replica_urls(at)) == 1
    resumed = at.run("apply", "gemma.yaml")
    assert resumed.code == 0, resumed.all
    assert len(replica_urls(at)) == 2
    status = at.run("status", "gemma.yaml")
    assert "Scale: 2 replicas of 1 to 3." in status.words
    assert "from 1 to 2: 9 requests wait for each replica" in status.words
    tree = json.loads(at.run("status", "gemma.yaml", "-json").out)
    strict(at, "status").validate(tree)
    assert tree["deployments"][0]["scale"]["last"]["after"] == 2

    at.emulator.set_load(**IDLE)
    quiet_since, routers = at.clock.now(), [Router(at=at, each=1)]
    with load(at, *routers):
        shrunk = watch(at, lambda: [r["index"] for r in at.state()["records"] if r["attempts"]] == [0])
    lost_nothing(routers, at_least=10)
    assert "Scaling from 2 to 1 replica: 0 requests run, none waits" in shrunk.err
    assert at.clock.now() - quiet_since > 10 * MINUTE

    # The profile's own number counts once, when it is another one than before.
    outside = at.run("plan", "gemma.yaml", "-set", "replicas=4")
    assert outside.code == 1
    assert "replicas: 4 is outside of the bounds of scale, 1 to 3" in outside.err
    at.write(PROFILE + SCALE + "replicas: 2\n")
    assert "Plan: 1 to add, 0 to change, 0 to destroy." in at.run("plan", "gemma.yaml").out
    assert at.run(*APPLY).code == 0
    assert len(replica_urls(at)) == 2
    watch(at, lambda: sum(bool(r["attempts"]) for r in at.state()["records"]) == 1)
    unchanged = at.run("plan", "gemma.yaml")
    assert "gemma has 1 replica by their load. replicas: 2 was applied before" in unchanged.words
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0
    assert at.run("destroy", "-auto-approve", "gemma.yaml").code == 0
    assert not at.slices
    assert not at.emulator.billed()


def test_a_price_ceiling_stops_the_next_replica_and_says_so(cli: Open) -> None:
    at: CommandLine = cli(boot={"boot_seconds": 60, "load": BUSY})
    at.write(PROFILE + SCALE.replace("max: 3", "max: 3, max_cost_per_hour: 2.0"))
    assert "1 to 3 replicas, 1 to begin with, at most $2.00/h" in at.run("plan", "gemma.yaml").out
    began = at.clock.now()
    watched = watch(at, lambda: at.clock.now() > began + HOUR)
    assert watched.err.count("The load needs another replica, but with another replica, all may cost $") == 1
    assert "(scale.max_cost_per_hour: 2)" in watched.err
    assert len(at.slices) == 1


def test_without_watch_and_where_the_load_cannot_be_read_nothing_is_scaled(cli: Open) -> None:
    at: CommandLine = cli(boot={"boot_seconds": 60, "load": BUSY})
    at.write(PROFILE.replace("max_model_len: 16384", "args: {disable_log_stats: true}") + SCALE + "replicas: 2\n")
    assert at.run(*APPLY).code == 0
    assert at.run(*APPLY).code == 0
    began = at.clock.now()
    watch(at, lambda: at.clock.now() > began + HOUR)
    assert len(at.slices) == 2
    assert "scaled" not in at.state()
