"""Random lives of deployments under budgets: whatever happens, the bill stays within them, and nothing outlives its end.

Zones refuse and preempt, deletions are refused or ignored, replies are lost, runs and watchers are killed at any moment,
two deployments share a team's budget, and clocks are set back. The bill is the emulated cloud's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.request import Request, urlopen

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open
from real_time import DEADLINE

from tpudeploy.cli.main import main
from tpudeploy.emulator import VirtualClock
from tpudeploy.ports import Workers

SAMPLE, ALL = 30, 1000
HOUR = 3600.0
LATE = 120.0  # seconds after its end in which a machine may be billed
# What nobody can make shorter:
AGAIN = 60.0  # until a machine tries again, for each of its deletions that Google refuses or ignores
PATIENCE = 45 * 60.0  # `health.timeout`: what never serves ends as if it had at the last moment
LANDING = 900.0  # from the creation of a machine, which is billed, to its boot, from which that patience counts
IDLE = 1800.0
SIGHT = 60.0  # in which a run sees that Google took a machine that it deletes
# A v6e-1 on spot, in August 2026, by Google's page: not by the catalog of the product.
USD_PER_HOUR = {"us-east5-a": 1.4033, "us-east5-b": 1.4033, "europe-west4-a": 1.78}


@dataclass(frozen=True)
class SetBack:
    """The clock of a machine that is behind."""

    world: VirtualClock
    seconds: float

    def now(self) -> float:
        return self.world.now() - self.seconds

    def sleep(self, seconds: float) -> None:
        self.world.sleep(seconds)

    def stop(self) -> None:
        self.world.stop()

    def workers(self) -> Any:
        workers: Workers = self.world.workers()  # type: ignore[assignment] # the context manager of one
        return workers


@dataclass
class Life:
    """What one seed draws."""

    seed: int

    def __post_init__(self) -> None:
        random = self.random = Random(self.seed)
        self.hours = random.choice([1, 2, 5])
        self.month = random.choice([4, 9, 20, 40])
        self.day = random.choice([None, None, 9, 20])
        self.is_team = random.random() < 0.4
        self.requests = random.choice([1, 1, 2, 3])
        self.base = random.choice([PROFILE, PROFILE, INSTANCE])
        self.skew = 0.0
        # Of those that end when idle, some have a user who never waits as long between two requests.
        self.is_idle = random.random() < 0.4
        self.pauses = random.choice([(60.0, 1500.0), (1200.0, 7200.0)])

    @property
    def names(self) -> list[str]:
        return ["gemma", "other"] if self.is_team else ["gemma"]

    def budget(self) -> str:
        limits = {"month": self.month, "day": self.day}
        return "{" + ", ".join(f"{key}: {usd}" for key, usd in limits.items() if usd is not None) + "}"

    def profile(self, name: str) -> str:
        text = self.base.replace("name: gemma", f"name: {name}")
        text = text.replace("max_parallel_requests: 1", f"max_parallel_requests: {self.requests}")
        budget = "" if self.is_team else f"budget: {self.budget()}\n"
        idle = ", idle: 30m" if self.is_idle else ""
        return f"{text}lifecycle: {{end: {self.hours}h{idle}}}\n{budget}"

    def trouble(self) -> list[Mapping[str, Any]]:
        random, zones = self.random, ["us-east5-a", "us-east5-b", "europe-west4-a", "*"]
        rows: list[Mapping[str, Any]] = []
        for _ in range(random.randint(0, 5)):
            times, after = random.randint(1, 3), random.choice([200.0, 900.0, 4000.0])
            rows.append(
                random.choice(
                    [
                        {"fault": "stockout", "zone": random.choice(zones), "times": times},
                        {"fault": "preempt", "zone": random.choice(zones), "after": after, "times": times},
                        {"fault": "lost-reply", "times": 1},
                        {"fault": "failed-reply", "times": 1},
                        {"fault": "hidden", "seconds": 40.0, "times": 1},
                        {"fault": "delete-refused", "times": 1},
                        {"fault": "deletion-ignored", "times": 1},
                    ]
                )
            )
        return rows

    def step(self, at: CommandLine) -> None:
        random, files = self.random, [f"{name}.yaml" for name in self.names]
        match random.choice(["apply", "killed", "killed", "watch", "sleep", "set back"]):
            case "apply":
                at.run("apply", "-auto-approve", "-timeout", "1h", *files)
            case "killed":
                at.left_or_killed(random.uniform(1.0, 1500.0), "apply", "-auto-approve", *files)
            case "watch":
                at.left_or_killed(random.uniform(300.0, 3 * HOUR), "apply", "-auto-approve", "-watch", *files)
            case "sleep":
                self.pause(at, random.uniform(60.0, 2 * HOUR))
            case _:
                self.skew = max(self.skew, seconds := random.choice([30.0, 300.0]))
                command = ["apply", "-auto-approve", "-timeout", "1h", *files, "--chdir", str(at.folder)]
                main(command, clock=SetBack(at.clock, seconds), patience=at.patience)

    def pause(self, at: CommandLine, seconds: float) -> None:
        """Let time pass by the minute, in which a user sends requests: a machine that looks late is late."""
        until = at.clock.now() + seconds
        asks_at = at.clock.now() + self.random.uniform(*self.pauses)
        while at.clock.now() < until:
            at.clock.sleep(60.0)
            if at.clock.now() >= asks_at:
                asks_at = at.clock.now() + self.random.uniform(*self.pauses)
                for name in self.names:
                    send_request(at, name)


def send_request(at: CommandLine, name: str) -> None:
    """Send a request as a user's client does, if anything serves."""
    document = at.folder / "endpoints" / f"{name}.json"
    if document.exists() and (url := json.loads(document.read_text("utf-8")).get("url")):
        body = json.dumps({"model": "google/gemma-4-E2B-it", "prompt": "Hello", "max_tokens": 4}).encode()
        request = Request(f"{url}/v1/completions", data=body, headers={"Content-Type": "application/json"})
        with suppress(OSError), urlopen(request, timeout=DEADLINE):
            pass


def prices(at: CommandLine) -> Mapping[str, float]:
    """Return the price of each machine per hour, by a list of its own."""
    return {row.name: USD_PER_HOUR[row.zone] for row in at.emulator.bill()}


def totals(at: CommandLine) -> Iterator[tuple[str, str, float]]:
    """Yield what the cloud bills for each day and month: `day` or `month`, which, and USD."""
    usd, sums = prices(at), dict[tuple[str, str], float]()
    for row in at.emulator.bill():
        begin, end = row.began, at.clock.now() if row.ended is None else row.ended
        while begin < end:
            until = min(end, (begin // 86400 + 1) * 86400)
            moment = datetime.fromtimestamp(begin, UTC)
            for key in (("day", f"{moment:%Y-%m-%d}"), ("month", f"{moment:%Y-%m}")):
                sums[key] = sums.get(key, 0.0) + usd[row.name] * (until - begin) / HOUR
            begin = until
    return ((kind, which, total) for (kind, which), total in sums.items())


def check(at: CommandLine, life: Life) -> None:
    """The bill is within the budgets, but for what a clock that is behind cannot know."""
    # Its runs record an end too early by that much, for each slice.
    unknown = life.skew / HOUR * sum(prices(at).values())
    limits = {"day": life.day, "month": life.month}
    for kind, which, usd in totals(at):
        limit = limits[kind]
        assert limit is None or usd <= limit + unknown + 0.01, (life.seed, kind, which, usd, limit)
    check_cost(at, life)


def check_cost(at: CommandLine, life: Life) -> None:
    """What `cost` says of each slice contains what is billed for it."""
    rows = json.loads(at.run("cost", "-group-by", "slice", "-json").out)["rows"]
    intervals = {row["key"]: (row["usd_least"], row["usd"]) for row in rows}
    for row in at.emulator.bill():
        price = USD_PER_HOUR[row.zone] / HOUR
        usd = price * ((at.clock.now() if row.ended is None else row.ended) - row.began)
        least, most = intervals[row.name]
        inexact = price * (life.skew + SIGHT) + 0.001
        assert least - inexact <= usd <= most + inexact, (life.seed, row, usd, least, most)


def end_in_state(at: CommandLine, life: Life, name: str) -> float | None:
    """Return when the deployment ends by its state: a run saw it serve, or it has ended."""
    if not (at.folder / ".tpudeploy" / "state" / f"{name}.json").exists():
        return None
    state = at.state(name)
    ended, since = state.get("ended"), state.get("serving_since")
    if ended and "lifecycle.end" in ended["why"]:
        return float(ended["at"])
    return None if since is None else float(since) + life.hours * HOUR


def run_life(cli: Open, seed: int) -> None:
    life = Life(seed)
    trouble = life.trouble()
    at = cli(trouble=trouble, seed=seed)
    for name in life.names:
        at.write(life.profile(name), f"{name}.yaml")
    if life.is_team:
        (at.folder / ".tpudeploy").mkdir()
        (at.folder / ".tpudeploy" / "budgets.yaml").write_text(life.budget(), encoding="utf-8")
    state_ends: dict[str, float] = {}
    for _ in range(life.random.randint(2, 6)):
        life.step(at)
        check(at, life)
        state_ends |= {
            name: end for name in life.names if (end := end_in_state(at, life, name)) and name not in state_ends
        }
    # Every watcher is gone, and the machines end themselves.
    life.pause(at, life.hours * HOUR + PATIENCE + LANDING + 2 * HOUR + LATE)
    check(at, life)
    assert at.emulator.billed() == (), (seed, at.emulator.billed())
    tries = sum(row["times"] for row in trouble if row["fault"].startswith("delet"))
    bill = at.emulator.bill()
    # The end counts from when a machine served by its own report, not from when a run looked.
    own = {row.name: life.hours * HOUR + (row.served or row.began + LANDING + PATIENCE) for row in bill}
    for name, end in state_ends.items():
        nearest = min(abs(each - end) for each in own.values())
        assert nearest <= life.skew + 2.0, (seed, name, nearest)
    for row in bill:
        assert row.ended is not None
        # A clock that is behind makes the end too early in the state, not in a machine that has it already. Where no run
        # ever saw it serve, each machine counts for itself.
        end = state_ends.get(row.name.split("-")[0], own[row.name] - life.skew) + life.skew
        assert row.ended <= end + LATE + AGAIN * tries, (seed, row, row.ended - end)
        if row.ends_by_itself and row.ended < min(end - life.skew, own[row.name]) - 1.0:
            assert life.is_idle, (seed, row)
            assert row.ended >= IDLE + max(row.used or 0.0, row.served or row.began), (seed, row)


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_a_random_life_stays_within_its_budget_and_ends(cli: Open, seed: int) -> None:
    run_life(cli, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SAMPLE, ALL))
def test_a_thousand_random_lives_stay_within_their_budgets_and_end(cli: Open, seed: int) -> None:
    run_life(cli, seed)
