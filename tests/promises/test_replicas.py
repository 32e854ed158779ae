"""No request fails that a healthy replica could have served: days of runs that end, preemptions, changes and scaling.

A model of a router reads the list of replicas late, and sends each request to one of them. It retries at another replica
only where no server accepts the connection, as routers do. What fails is counted by its cause.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from clients import Sender, complete, published
from command_line import PROFILE, CommandLine, Open
from promises.extent import is_whole

from tpudeploy.domain.patience import Patience

MINUTE, DAY = 60.0, 86400.0
HELD = Patience().held
SCHEDULE = 30 * MINUTE
TEXT = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: RUN\n  labels: {team: TEAM}").replace(
    "16384", "LENGTH"
)
TEXT += "lifecycle: {on_run_end: renew}\nreplicas: REPLICAS\n"


@dataclass(frozen=True, kw_only=True)
class Course:
    """Days of one deployment: how long a run of flex-start lasts, and the share of half hours in which nothing is done."""

    days: float
    run: str
    quiet: float


# Together 200 days, with a renewal for each run and replica, and about two other operations a day. Each is a test of its
# own, because `make exhaustive` runs tests side by side.
WHOLE = [Course(days=20, run=run, quiet=0.955) for run in ("12h", "24h", "48h", "72h", "168h")] * 2
SAMPLE = [Course(days=0.2, run="6h", quiet=0.5)]


@dataclass(kw_only=True)
class RetryingRouter(Sender):
    """Sends each request to the replicas of its list in turn, until one accepts the connection."""

    failed: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)  # the slice of each connection that was not accepted
    _rows: list[tuple[str, str]] = field(default_factory=list)

    def _send(self) -> None:
        now = self.at.clock.now()
        if now - self._read_at > self.holds:
            rows = published(self.at, "gemma").get("replicas", [])
            self._rows, self._read_at = [(row["slice"], row["url"]) for row in rows], now
        self.sent += 1
        first = self.sent % max(1, len(self._rows))
        for name, url in (*self._rows[first:], *self._rows[:first]):
            try:
                complete(url)
            except ConnectionRefusedError:
                self.refused.append(name)
                continue
            except (OSError, http.client.HTTPException, ValueError):
                self.failed[f"cut off by {name}"] += 1
            return
        self.failed["no replica accepted it" if self._rows else "the list is empty"] += 1


@dataclass(kw_only=True)
class Operator:
    """A person and a schedule: each half hour an apply, before which the profile or the cloud may have changed."""

    at: CommandLine
    course: Course
    random: Random
    length: int = 16384
    team: str = "search"
    replicas: int = 3
    killed: set[str] = field(default_factory=set)
    replace: tuple[str, ...] = ()
    done: Counter[str] = field(default_factory=Counter)

    def half_an_hour(self) -> None:
        deeds = (self.change, self.rename, self.scale, self.renew_one, self.lose_one, self.lose_one, self.lose_one)
        is_quiet = self.random.random() < self.course.quiet
        deed: Callable[[], None] = self.nothing if is_quiet else self.random.choice(deeds)
        self.replace = ()
        deed()
        self.done[deed.__name__] += 1
        self.apply()
        ends = self.at.clock.now() + SCHEDULE
        while self.at.clock.now() < ends:
            self.at.clock.sleep(10 * MINUTE)

    def apply(self) -> None:
        values = {
            "LENGTH": str(self.length),
            "TEAM": self.team,
            "REPLICAS": str(self.replicas),
            "RUN": self.course.run,
        }
        text = TEXT
        for key, value in values.items():
            text = text.replace(key, value)
        applied = self.at.run("apply", "-auto-approve", self.at.write(text), *self.replace)
        assert applied.code == 0, applied.all

    def change(self) -> None:
        self.length = 8192 if self.length == 16384 else 16384

    def rename(self) -> None:
        self.team = "ads" if self.team == "search" else "search"

    def scale(self) -> None:
        self.replicas = self.random.choice((2, 3, 4))

    def renew_one(self) -> None:
        self.replace = ("-replace", f"gemma[{self.random.randrange(self.replicas)}]")

    def lose_one(self) -> None:
        """Kill a machine without notice, between two requests."""
        active = [name for name, state in self.at.slices.items() if state == "ACTIVE"]
        name = self.random.choice(active)
        self.killed.add(name)
        self.at.emulator.preempt(name)

    def nothing(self) -> None:
        """Only the schedule comes."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    courses = WHOLE if is_whole(metafunc.config.getoption("-m")) else SAMPLE
    names = [f"{number}: runs of {course.run}" for number, course in enumerate(courses)]
    metafunc.parametrize(("seed", "course"), list(zip(names, courses, strict=True)), ids=names)


@pytest.mark.exhaustive
def test_no_request_fails_that_a_healthy_replica_could_have_served(cli: Open, seed: str, course: Course) -> None:
    at = cli(boot={"boot_seconds": 60})
    operator = Operator(at=at, course=course, random=Random(seed))
    operator.apply()
    routers = [RetryingRouter(at=at, each=1), RetryingRouter(at=at, each=1, holds=HELD)]
    ends = at.clock.now() + DAY * course.days
    for router in routers:
        at.clock.on_advance.append(router.on_advance)
    while at.clock.now() < ends:
        operator.half_an_hour()
        for router in routers:
            assert not router.failed, (router.failed, operator.done, operator.killed)
            assert set(router.refused) <= operator.killed, (set(router.refused) - operator.killed, operator.done)
    assert all(router.sent > 250 for router in routers), [router.sent for router in routers]
    assert len(operator.done) > 2, operator.done
