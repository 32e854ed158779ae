"""Wherever a run is killed, and whatever it was about, the ledger is the bill that the emulated cloud keeps for itself.

A run may die before each of its effects: a write of the state, a line of the ledger, a call that changes something at
Google, each of the calls that a change of a group consists of. A second run completes what the first began.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest
from command_line import HAND_MADE, INSTANCE, PROFILE, CommandLine, Killed, Open
from kills import Kill, put_to
from promises.extent import is_whole

MINUTE, HOUR = 60.0, 3600.0
SAMPLES = 2
Act = Callable[[CommandLine], None]


def run(*words: str) -> Act:
    """Return an act: one command, which ends well however often it is given."""

    def act(at: CommandLine) -> None:
        result = at.run(*words)
        assert result.code == 0, result.all

    return act


def apply_with(*settings: str) -> Act:
    """Return an act: an apply with these settings."""
    return run("apply", "-auto-approve", "gemma.yaml", *(word for each in settings for word in ("-set", each)))


def wait(hours: float) -> Act:
    """Return an act: time passes, in which no run looks, and machines do each minute."""
    return partial(_pass, hours=hours)


def _pass(at: CommandLine, hours: float) -> None:
    for _ in range(int(hours * 60)):
        at.clock.sleep(MINUTE)


def watch(hours: float, **load: float) -> Act:
    """Return an act: `apply -watch` under this load, which ends with its laptop."""
    return partial(_watch, hours=hours, load=load)


def _watch(at: CommandLine, hours: float, load: Mapping[str, float]) -> None:
    at.emulator.set_load(**load)
    at.left_or_killed(hours * HOUR, "apply", "-auto-approve", "-watch", "gemma.yaml")


def preempt(at: CommandLine) -> None:
    at.emulator.preempt(*at.emulator.billed())
    at.clock.sleep(40.0)


def import_by_name(at: CommandLine) -> None:
    if HAND_MADE not in str(at.run("state", "list", "-json").out):
        at.run("import", "gemma[0]", HAND_MADE)


def rename(at: CommandLine) -> None:
    at.run("state", "mv", "gemma", "chat")  # refused once it is done
    assert "chat" in at.run("state", "list").out
    at.write(PROFILE.replace("name: gemma", "name: chat"))


def remove_from_state(at: CommandLine) -> None:
    at.run("state", "rm", "-auto-approve", "gemma")  # refused once it is done
    assert "gemma" not in at.run("state", "list").out


def lose_state(at: CommandLine) -> None:
    (at.folder / ".tpudeploy" / "state" / "gemma.json").unlink()


@dataclass(frozen=True)
class Scenario:
    """`acts` follow one another, each of them whole before the next. `by_hand`: a person has made a slice before."""

    acts: tuple[Act, ...]
    text: str = PROFILE
    cloud: Mapping[str, Any] = field(default_factory=dict)
    by_hand: bool = False
    late: float = 1.0  # seconds: how late Google ends a run, whose end counts by the time that Google named before


APPLY, DESTROY = apply_with(), run("destroy", "-auto-approve", "gemma.yaml")
LIFE = (APPLY, wait(0.5), DESTROY)
IDLE = {"num_requests_running": 0, "num_requests_waiting": 0, "kv_cache_usage_perc": 0.1}
BUSY = {"num_requests_running": 200, "num_requests_waiting": 9, "kv_cache_usage_perc": 0.6}
SCALE = "scale: {max: 2, waiting: 4, kv_cache: 0.8, cooldown: 10m}\n"
BOOT = {"boot": {"boot_seconds": 60}}
ROUTED = PROFILE + "replicas: 2\nrouter: {kind: haproxy, host: vm}\n"
GROUP = (
    INSTANCE.replace("v6e-1", "v5p-16")
    .replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    .replace("[spot]", "[on-demand]")
)
RENEWED = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: 3h") + "lifecycle: {on_run_end: renew}\n"
STOCKOUT = {"trouble": [{"fault": "stockout", "zone": "us-east5-a", "times": 1}]}
SHORTER = "serving.max_model_len=8192"
# What the cloud does within minutes, as its rehearsal expects.
REHEARSED = {"timings": {"boot": 240.0, "deleting": 120.0, "reset": 120.0}}
SCENARIOS: Mapping[str, Scenario] = {
    "created, the first zone full": Scenario(LIFE, cloud=STOCKOUT),
    "several grants at once": Scenario(LIFE, PROFILE.replace("requests: 1", "requests: 3")),
    "two replicas, then three, then one": Scenario(
        (apply_with("replicas=2"), wait(0.5), apply_with("replicas=3"), wait(0.5), apply_with("replicas=1"), DESTROY),
        cloud=BOOT,
    ),
    "scaled up and down by its load": Scenario(
        (APPLY, watch(0.7, **BUSY), APPLY, watch(1.0, **IDLE), APPLY, DESTROY),
        PROFILE + SCALE,
        cloud={"boot": {"boot_seconds": 60, "load": IDLE}},
    ),
    "renewed before its run ends": Scenario((APPLY, wait(1.75), APPLY, wait(0.5), DESTROY), RENEWED),
    "its server restarted in place": Scenario((APPLY, wait(0.5), apply_with(SHORTER), DESTROY)),
    "relabelled": Scenario((APPLY, wait(0.5), apply_with("placement.labels.team=ads"), DESTROY)),
    "handed over to a second slice": Scenario(
        (APPLY, wait(0.5), apply_with(SHORTER), DESTROY), PROFILE + "lifecycle: {update: blue-green}\n"
    ),
    "replaced, the new one first": Scenario((APPLY, wait(0.5), apply_with("tpu.type=v6e-4"), DESTROY)),
    "a router on a VM, and without it": Scenario((APPLY, wait(0.5), apply_with("router=null"), DESTROY), ROUTED, BOOT),
    "an instance, preempted": Scenario((APPLY, wait(0.5), preempt, APPLY, DESTROY), INSTANCE),
    "a group, its server restarted": Scenario((APPLY, wait(0.5), apply_with(SHORTER), DESTROY), GROUP),
    "moved to Compute Engine": Scenario((APPLY, wait(0.5), apply_with("placement.backend=gce-instance"), DESTROY)),
    "imported": Scenario((import_by_name, APPLY, wait(0.5), DESTROY), by_hand=True),
    "adopted by a lost state": Scenario(
        (APPLY, lose_state, run("apply", "-adopt", "-auto-approve", "gemma.yaml"), wait(0.5), DESTROY)
    ),
    "renamed": Scenario((APPLY, rename, wait(0.5), APPLY, DESTROY)),
    "removed from the state, and by gc": Scenario((APPLY, remove_from_state, run("gc", "-foreign", "-auto-approve"))),
    "ended by itself": Scenario((APPLY, wait(3.0), APPLY), PROFILE + "lifecycle: {end: 1h}\n"),
    "an idle instance": Scenario((APPLY, wait(3.0), APPLY), INSTANCE + "lifecycle: {idle: 30m}\n"),
    "an idle group": Scenario((APPLY, wait(3.0), APPLY), GROUP + "lifecycle: {idle: 30m}\n"),
    "a rehearsal": Scenario((run("rehearse", "-auto-approve", "-max-cost", "2"),), cloud=REHEARSED, late=30.0),
}


# After these, no run has seen yet what became of the machines.
UNSEEN = (_pass, _watch, preempt, lose_state)


def assert_ledger_is_the_bill(at: CommandLine, late: float) -> None:
    """Each machine of the bill is in the ledger with its time, and nothing else is."""
    now = at.clock.now()
    rows = json.loads(at.run("cost", "-group-by", "slice", "-json").out)["rows"]
    # What is imported by a run that dies before its first line is counted by its state.
    prices = {row["key"]: row["usd_per_hour"] for row in rows if row["running"] or row["may_run"]}
    with suppress(FileNotFoundError):
        lines = (at.folder / ".tpudeploy" / "ledger-emulated.jsonl").read_text("utf-8").splitlines()
        prices |= {line["name"]: line["usd_per_hour"] for line in map(json.loads, lines)}
    in_ledger = {row["key"]: row["usd"] / prices[row["key"]] * HOUR for row in rows}
    bill = dict[str, float]()
    for row in at.emulator.bill():
        name = row.name.partition("-w-")[0]  # a group is one slice, from its first machine on
        bill[name] = max(bill.get(name, 0.0), (now if row.ended is None else row.ended) - row.began)
    assert in_ledger == pytest.approx(bill, abs=late)
    assert {row["key"] for row in rows if row["running"] or row["may_run"]} == set(at.emulator.billed())


def live(cli: Open, scenario: Scenario, patch: pytest.MonkeyPatch, kill: tuple[int, int] | None = None) -> list[int]:
    """Live a scenario, killed in this act before this effect. Return how many effects each act has."""
    at, counts = cli(nodes="simulated", **scenario.cloud), list[int]()
    at.folder /= f"killed at {kill}"
    at.folder.mkdir()
    if scenario.by_hand:
        at.make_by_hand()
    at.write(scenario.text)
    for number, act in enumerate(scenario.acts):
        fuse = Kill(kill[1] if kill is not None and kill[0] == number else None)
        with patch.context() as dying:
            put_to(dying, fuse)
            with suppress(Killed):
                act(at)
        counts.append(fuse.count)
        if fuse.at is not None and fuse.count > fuse.at:
            at.clock.sleep(20.0)
            act(at)
        if getattr(act, "func", None) not in UNSEEN and act not in UNSEEN:
            assert_ledger_is_the_bill(at, scenario.late)
    assert at.emulator.billed() == ()
    return counts


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_before_any_effect_the_ledger_is_the_bill(
    cli: Open, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, name: str
) -> None:
    scenario = SCENARIOS[name]
    effects = live(cli, scenario, monkeypatch)
    kills = [(act, effect) for act, count in enumerate(effects) for effect in range(count)]
    sample = kills if is_whole(request.config.getoption("-m")) else Random(name).sample(kills, SAMPLES)
    for kill in sample:
        live(cli, scenario, monkeypatch, kill)
