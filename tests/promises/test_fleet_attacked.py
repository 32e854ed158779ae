"""Six deployments in one run, under attack: nobody waits for another, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

SIX = ("one", "two", "three", "four", "five", "six")
CLOUD: Mapping[str, Any] = {"nodes": "simulated", "creates_per_minute": 1000}
SLOW_SECONDS = 15.0
KILLS = 3
RE_RUNS = 12
MISSED_LOOKS = 0.1  # of the seconds that the slow replies take together
SEEDS = 25  # under `make exhaustive`; one of each kind otherwise
# What goes wrong, beside replies that take long. Each strikes at the deployments or in the zones that the seed draws.
FAULTS: tuple[Mapping[str, Any], ...] = (
    {"fault": "unavailable", "method": "queuedResources.get"},
    {"fault": "backend-error", "method": "queuedResources.create"},
    {"fault": "connection-refused", "method": "queuedResources.delete"},
    {"fault": "lost-reply", "method": "queuedResources.create"},
    {"fault": "lost-reply", "method": "queuedResources.delete"},
    {"fault": "stockout", "layer": "L3"},
    {"fault": "internal-error"},
    {"fault": "hidden", "seconds": 70.0},
    {"fault": "preempt", "after": 900.0},
    {"fault": "timings", "provisioning": 600.0, "deleting": 400.0},
)


def _fleet(person: CommandLine) -> None:
    folder = person.folder / "fleet"
    folder.mkdir(exist_ok=True)
    for name in SIX:
        (folder / f"{name}.yaml").write_text(PROFILE.replace("name: gemma", f"name: {name}"), encoding="utf-8")
    shutil.rmtree(person.folder / ".tpudeploy", ignore_errors=True)


def _slow(names: Collection[str]) -> list[Mapping[str, Any]]:
    return [{"fault": "slow", "name": f"{name}-*", "seconds": SLOW_SECONDS} for name in names]


def _draw_trouble(random: Random, names: Collection[str]) -> list[Mapping[str, Any]]:
    """Draw a few faults, all of which pass: they strike at requests of the deployments `names`."""
    rows = random.sample(FAULTS, 4)
    return [{**row, "name": f"{random.choice(list(names))}-*", "times": random.randint(1, 3)} for row in rows]


def _served_after(person: CommandLine, parallelism: int) -> dict[str, float]:
    """Apply the fleet; for each deployment that serves, return the seconds that this took."""
    began = person.clock.now()
    result = person.run("apply", "fleet", "-auto-approve", "-json", f"-parallelism={parallelism}")
    rows = [json.loads(line) for line in result.out.splitlines()]
    return {row["address"].partition("[")[0]: row["at"] - began for row in rows if row.get("type") == "serving"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("parallelism", [1, 2, 8])
def test_nobody_waits_for_the_trouble_of_another(cli: Open, parallelism: int, whole: bool) -> None:
    """Those that have no trouble serve when they do in a run in which nobody has any: durations are exact here.

    With one thread they wait for at most one reply at a time: as long as all slow replies took together. With more
    threads they wait for none. Threads that are due at one instant run in any order, and so a deployment may miss a
    look or two in either run, which is a small part of what the slow replies take.
    """
    for seed in range(SEEDS if whole else 1):
        random = Random(f"{parallelism} {seed}")
        victims = random.sample(SIX, 1 if parallelism == 2 else 2)
        others = set(SIX) - set(victims)
        usual_person = cli(**CLOUD, seed=seed, jitter=0.0)
        _fleet(usual_person)
        usual = _served_after(usual_person, parallelism)
        person = cli(**CLOUD, seed=seed, jitter=0.0, trouble=[*_slow(victims), *_draw_trouble(random, victims)])
        _fleet(person)
        after = _served_after(person, parallelism)
        assert others <= after.keys(), (seed, victims, after)
        paths = [request.path for request in person.emulator.requests]
        slow_paths = [path for path in paths if any(f"/{name}-" in path or f"={name}-" in path for name in victims)]
        slow_seconds = SLOW_SECONDS * len(slow_paths)
        latest = max(usual.values()) + (slow_seconds if parallelism == 1 else MISSED_LOOKS * slow_seconds)
        assert all(after[name] <= latest for name in others), (seed, victims, usual, after, slow_seconds)


@pytest.mark.exhaustive
@pytest.mark.parametrize("parallelism", [1, 2, 8])
def test_killed_between_steps_in_a_cloud_that_fails_nothing_is_left_behind(
    cli: Open, parallelism: int, whole: bool
) -> None:
    for seed in range(SEEDS if whole else 1):
        random = Random(f"kills {parallelism} {seed}")
        trouble = [*_slow(random.sample(SIX, 2)), *_draw_trouble(random, SIX)]
        person = cli(**CLOUD, seed=seed, trouble=trouble)
        _fleet(person)
        for verb in ("apply", "destroy"):
            words = (verb, "fleet", "-auto-approve", f"-parallelism={parallelism}")
            for _ in range(KILLS):
                person.left_or_killed(random.uniform(1.0, 900.0), *words)
                _must_have_one_each(person, seed)
            _run_until_done(person, words, seed)
            standing = Counter(name.partition("-")[0] for name in person.slices)
            assert standing == (dict.fromkeys(SIX, 1) if verb == "apply" else {}), (seed, trouble, person.slices)
            assert all(_state_of(person, name)["goal"] is None for name in SIX), (seed, trouble)


def _run_until_done(person: CommandLine, words: tuple[str, ...], seed: int) -> None:
    """Run the command again, as a person would, until it is done and a plan finds no changes.

    One done is not enough: a slice may be preempted after its apply.
    """
    plan = ("plan", "fleet", *(["-destroy"] if words[0] == "destroy" else []))
    answer = None
    for _ in range(RE_RUNS):
        answer = person.run(*words)
        if answer.code == 0 and "No changes." in person.run(*plan).out:
            return
    assert answer is not None
    raise AssertionError(f"does not converge with seed {seed}: {answer.all}")


def _must_have_one_each(person: CommandLine, seed: int) -> None:
    """At any moment: everything that exists is in a state, and no deployment keeps two slices."""
    for name, state in ((name, _state_of(person, name)) for name in SIX):
        attempts = [a for replica in state.get("records", ()) for a in replica["attempts"]]
        existing = {each for each in person.slices if each.startswith(f"{name}-")}
        assert existing <= {a["name"] for a in attempts}, (seed, name, existing, attempts)
        names = [a["name"] for a in attempts if a["life"]["state"] != "releasing" and a["name"] in existing]
        names = [each for each in names if person.slices[each] not in {"FAILED", "SUSPENDED", "SUSPENDING", "DELETING"}]
        assert len(names) <= 1, (seed, name, names)


def _state_of(person: CommandLine, name: str) -> Mapping[str, Any]:
    try:
        return person.state(name)
    except FileNotFoundError:
        return {"goal": None}
