"""No request fails that a healthy replica could have served: days of runs that end, preemptions, changes and scaling.

A model of a router reads the list of replicas late, and sends each request to one of them. It retries at another replica
only where no server accepts the connection, as routers do. Beside short requests, streams last for minutes. What fails is
counted by its cause: only the streams of a machine that was killed may break off.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

import pytest
from clients import Reader, Sender, complete, published
from command_line import PROFILE, CommandLine, Open
from promises.extent import is_whole

from tpudeploy.domain.patience import Patience

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
HELD = Patience().held
SCHEDULE = 30 * MINUTE
TOKEN_SECONDS = 10.0
NOTICES = (0.0, 30.0, 120.0)  # seconds; 0 for a machine that is gone at once
TEXT = PROFILE.replace("[spot]", "[flex-start]\n  max_run_duration: RUN\n  labels: {team: TEAM}").replace(
    "16384", "LENGTH"
)
TEXT += "lifecycle: {on_run_end: renew}\nreplicas: REPLICAS\nscale: {min: 2, max: 4, cooldown: 5m}\n"
QUIET, BUSY = 0.0, 0.9  # the share of the KV caches that is in use beside that of the test's own requests


@dataclass(frozen=True, kw_only=True)
class Course:
    """Days of one deployment: how long a run of flex-start lasts, and the share of half hours in which nothing is done."""

    days: float
    run: str
    quiet: float


# Together 200 days, with a renewal for each run and replica, and more than one other operation a day. Each is a test of its
# own, because `make exhaustive` runs tests side by side.
WHOLE = [Course(days=20, run=run, quiet=0.97) for run in ("12h", "24h", "48h", "72h", "168h")] * 2
SAMPLE = [Course(days=0.2, run="6h", quiet=0.5)]


@dataclass(kw_only=True)
class RetryingRouter(Sender):
    """Sends each request to the replicas of its list in turn, until one accepts the connection."""

    failed: Counter[str] = field(default_factory=Counter)
    unserved: int = 0  # requests at a time at which no replica served
    refused: list[str] = field(default_factory=list)  # the slice of each connection that was not accepted
    _rows: list[tuple[str, str]] = field(default_factory=list)
    _urls: dict[str, str] = field(default_factory=dict)  # of every slice that was on the list

    def _send(self) -> None:
        now = self.at.clock.now()
        if now - self._read_at > self.holds:
            rows = published(self.at, "gemma").get("replicas", [])
            self._rows, self._read_at = [(row["slice"], row["url"]) for row in rows], now
            self._urls |= self._rows
        self.sent += 1
        first = self.sent % max(1, len(self._rows))
        for name, url in (*self._rows[first:], *self._rows[:first]):
            try:
                self._request(name, url)
            except ConnectionRefusedError:
                self.refused.append(name)
                continue
            except (OSError, http.client.HTTPException, ValueError):
                self.failed[f"cut off by {name}"] += 1
            return
        if self._is_served_anywhere():
            self.failed["no replica accepted it" if self._rows else "the list is empty"] += 1
        else:
            self.unserved += 1

    def _request(self, name: str, url: str) -> None:
        """Send one request. Raise OSError, HTTPException or ValueError if it fails."""
        del name
        complete(url)

    def _is_served_anywhere(self) -> bool:
        active = {name for name, state in self.at.slices.items() if state == "ACTIVE"}
        for name, url in self._urls.items():
            with suppress(OSError, http.client.HTTPException, ValueError):
                if name in active and complete(url):
                    return True
        return False


@dataclass(kw_only=True)
class StreamingRouter(RetryingRouter):
    """Keeps some streams open that each last for up to six minutes."""

    random: Random
    most: int = 2
    read: int = 0
    broken: Counter[str] = field(default_factory=Counter)  # by the slice that broke them off
    _open: list[tuple[str, float, Reader]] = field(default_factory=list)

    def _send(self) -> None:
        if len(self._open) < self.most:
            super()._send()
        self.settle()

    def _request(self, name: str, url: str) -> None:
        tokens = self.random.randint(6, 36)
        reader = Reader(self.at, tokens, url=url)
        self._open.append((name, self.at.clock.now() + tokens * TOKEN_SECONDS, reader))

    def settle(self) -> None:
        """Count the streams that have ended."""
        now = self.at.clock.now()
        for one in tuple(self._open):
            name, due, reader = one
            if now > due:
                reader.join()
            if reader.ended_at:
                self._open.remove(one)
                self.read += 1
                self.broken[name] += bool(reader.error)


@dataclass(kw_only=True)
class Operator:
    """A person and a schedule: each half hour an apply, before which the profile or the cloud may have changed."""

    at: CommandLine
    course: Course
    random: Random
    began: float
    length: int = 16384
    team: str = "search"
    replicas: int = 3
    killed: set[str] = field(default_factory=set)
    opens_at: float = 0.0
    lost_at: float = 0.0
    options: tuple[str, ...] = ()
    done: Counter[str] = field(default_factory=Counter)

    def half_an_hour(self) -> None:
        losses = (self.lose_one, self.lose_one, self.lose_one)
        scalings = (self.scale, self.scale_by_load, self.scale_by_load)
        deeds = (self.change, self.rename, *scalings, self.renew_one, self.close_all_zones, *losses)
        is_quiet = self.random.random() < self.course.quiet
        deed: Callable[[], None] = self.nothing if is_quiet else self.random.choice(deeds)
        self.options = ()
        deed()
        self.done[deed.__name__] += 1
        ends = self.at.clock.now() + SCHEDULE
        with self.interrupted(ends):
            self.apply()
        self.at.emulator.set_load()
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
        applied = self.at.run("apply", "-auto-approve", self.at.write(text), *self.options, "-timeout", "30m")
        expected = {130 if "-watch" in self.options else 0}
        if self.at.clock.now() < self.opens_at + HOUR:
            # A run that gets no slice is continued by the next one.
            expected.add(12)
        if self.at.clock.now() < self.lost_at + HOUR:
            # A machine that is lost during a run needs another plan.
            expected.add(11)
        assert applied.code in expected, applied.all

    @contextmanager
    def interrupted(self, ends: float) -> Iterator[None]:
        """Interrupt a run that is kept alive, where it is one."""

        def on_advance() -> None:
            if self.at.clock.now() >= ends:
                raise KeyboardInterrupt

        if "-watch" in self.options:
            self.at.clock.on_advance.append(on_advance)
        yield
        if "-watch" in self.options:
            self.at.clock.on_advance.remove(on_advance)

    def change(self) -> None:
        self.length = 8192 if self.length == 16384 else 16384

    def rename(self) -> None:
        self.team = "ads" if self.team == "search" else "search"

    def scale(self) -> None:
        self.replicas = self.random.choice((2, 3, 4))

    def scale_by_load(self) -> None:
        """Let the load ask for another replica or for one less, while a run is kept alive."""
        self.at.emulator.set_load(kv_cache_usage_perc=self.random.choice((QUIET, BUSY)))
        self.options = ("-watch",)

    def renew_one(self) -> None:
        self.options = ("-replace", f"gemma[{self.random.choice(self.at.state()['replicas'])}]")

    def lose_one(self) -> None:
        """Kill a machine, with a notice or without one."""
        active = [name for name, state in self.at.slices.items() if state == "ACTIVE" and name not in self.killed]
        if active:
            name = self.random.choice(active)
            self.killed.add(name)
            self.lost_at = self.at.clock.now()
            self.at.emulator.preempt(name, notice=self.random.choice(NOTICES))

    def close_all_zones(self) -> None:
        """Let no zone have capacity for some hours, so that a run may end before its successor is granted."""
        if self.at.clock.now() > self.opens_at + 3 * DAY:
            self.opens_at = self.at.clock.now() + self.random.choice((1, 3)) * HOUR
            self.at.emulator.script({"fault": "no-grant", "until": self.opens_at - self.began})

    def nothing(self) -> None:
        """Only the schedule comes."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    courses = WHOLE if is_whole(metafunc.config.getoption("-m")) else SAMPLE
    names = [f"{number}: runs of {course.run}" for number, course in enumerate(courses)]
    metafunc.parametrize(("seed", "course"), list(zip(names, courses, strict=True)), ids=names)


@pytest.mark.exhaustive
def test_no_request_fails_that_a_healthy_replica_could_have_served(cli: Open, seed: str, course: Course) -> None:
    at = cli(boot={"boot_seconds": 60, "token_seconds": TOKEN_SECONDS})
    operator = Operator(at=at, course=course, random=Random(seed), began=at.clock.now())
    operator.apply()
    streams = StreamingRouter(at=at, each=1, holds=HELD, random=Random(f"streams {seed}"))
    routers = [RetryingRouter(at=at, each=1), RetryingRouter(at=at, each=1, holds=HELD), streams]
    ends = at.clock.now() + DAY * course.days
    for router in routers:
        at.clock.on_advance.append(router.on_advance)
    while at.clock.now() < ends:
        operator.half_an_hour()
        for router in routers:
            assert not router.failed, (router.failed, operator.done, operator.killed)
            assert set(router.refused) <= operator.killed, (set(router.refused) - operator.killed, operator.done)
        assert set(+streams.broken) <= operator.killed, (streams.broken, operator.killed, operator.done)
    assert all(router.sent > 200 for router in routers[:2]), [router.sent for router in routers]
    assert streams.read > 10, streams.read
    assert len(operator.done) > 2, operator.done
