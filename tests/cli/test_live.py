"""A person at a terminal sees every place at a glance while it lasts, and a clean screen afterwards."""

from __future__ import annotations

import os
import pty
import re
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE
from goldens import assert_golden
from pseudo_terminal import INTERRUPT, person
from screen import Screen

from tpudeploy.cli.live import Live
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import events
from tpudeploy.domain.plan import Action
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.domain.status import BootStage
from tpudeploy.emulator import Emulator, RealClock, VirtualClock, running
from tpudeploy.text.words import width

QUICK = dict.fromkeys(("queued", "provisioning", "boot", "deleting", "suspending"), 0.1) | {"waiting": 1.5}
HASTE = {"TPUDEPLOY_PATIENCE_POLL_FIRST": "0.05", "TPUDEPLOY_PATIENCE_POLL_MANY": "0.1"}
FULL = {"fault": "stockout", "zone": "us-east5-a"}
TWO = PROFILE.replace("requests: 1", "requests: 2")
TIME = r"(\d+s|\d+m \d+s)"  # a busy machine may take minutes
IN_TABLE = re.compile("lapses in|again in|not asked:")


@pytest.fixture
def cloud() -> Iterator[Emulator]:
    scenario = {"nodes": "simulated", "timings": QUICK, "trouble": [FULL]}
    with running(clock=RealClock(), scenario=scenario) as emulator:
        yield emulator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gemma.yaml").write_text(TWO, encoding="utf-8")
    return tmp_path


def test_all_places_stand_below_the_lines_until_the_end(cloud: Emulator, folder: Path) -> None:
    cloud.script({"fault": "wait-for-ever"})  # the queue moves when it has been looked at, and not before
    screen, began = Screen(80), time.monotonic()
    environment = {**cloud.environment, **HASTE}
    with person("apply", "-auto-approve", "gemma.yaml", folder=folder, environment=environment) as somebody:
        during = somebody.waits_for("again in").read
        *_, table = "\n".join(screen.shows(during.rpartition("\n")[0])).partition("\n\n  gemma: ")
        somebody.waits_for("Queued in")
        cloud.grant(next(name for zone in cloud.live().values() for name in zone))
        assert somebody.stays_to_the_end() == 0
    head, titles, first, *rows = [" ".join(row.split()) for row in table.splitlines()]
    assert re.fullmatch(rf"{TIME} elapsed, \$0\.00 so far \(emulator: not billed\)", head), head
    assert titles == "place price state for"
    price = re.escape("$1.40/h")
    assert re.match(rf"us-east5-b spot {price} (asked|queued) {TIME} lapses in (2h 0m|1h 5\dm)", first), first
    refused = rf"us-east5-a spot {price} refused {TIME} again in {TIME} There is"
    assert any(re.match(refused, row) for row in rows), rows
    after = Screen(80).shows(somebody.read)
    assert not any(map(IN_TABLE.search, after))
    *run, empty = after[after.index("gemma[0]: Creating...") : after.index("Outputs:") - 2]
    assert all(line.startswith(("gemma[0]: ", "  ")) for line in run), run
    assert run[-1].startswith("gemma[0]: Creation complete after")
    assert not empty
    frames = len(re.findall("\r\033\\[", somebody.read))
    assert frames <= 4 * (time.monotonic() - began) + 1


def test_ctrl_c_leaves_the_lines_and_the_error(cloud: Emulator, folder: Path) -> None:
    cloud.script({"fault": "wait-for-ever"})
    environment = {**cloud.environment, **HASTE, "NO_COLOR": "1"}
    with person("apply", "-auto-approve", "gemma.yaml", folder=folder, environment=environment) as somebody:
        assert somebody.waits_for("  queued").types(INTERRUPT).stays_to_the_end() == 130
    assert not re.search("\033\\[\\d*m", somebody.read)
    rows = Screen(80).shows(somebody.read)
    firsts = [
        line for line in rows if line and not line.startswith(" ")
    ]  # of each event and error; the rest is indented
    assert any(line.startswith("Interrupted: no new step starts") for line in firsts)
    *_, last, error = firsts
    assert last.startswith("gemma: Still outstanding: ")
    assert error.startswith("Error: Interrupted.")
    assert rows[-1] == ""


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_that_cannot_be_drawn_upon_gets_lines_alone(cloud: Emulator, folder: Path, kind: str) -> None:
    environment = {**cloud.environment, **HASTE, "TERM": kind, "NO_COLOR": "1"}
    with person("apply", "-auto-approve", "gemma.yaml", folder=folder, environment=environment) as somebody:
        assert somebody.stays_to_the_end() == 0
    assert "\033" not in somebody.read
    assert not any(map(IN_TABLE.search, somebody.read.splitlines()))


def test_json_at_a_terminal_is_json_alone(cloud: Emulator, folder: Path) -> None:
    environment = {**cloud.environment, **HASTE}
    with person("apply", "-auto-approve", "-json", "gemma.yaml", folder=folder, environment=environment) as somebody:
        assert somebody.stays_to_the_end() == 0
    assert '"type": "outlook"' in somebody.read
    assert "\r\033[" not in somebody.read


class Window:
    """A terminal's window in this process: what Live draws upon, and what then stands in it."""

    def __init__(self, columns: int, lines: int, theirs: int, ours: int) -> None:
        self._theirs, self._ours = theirs, ours
        self._stream = os.fdopen(theirs, "w", encoding="utf-8")
        self.screen = Screen(columns)
        self.clock = VirtualClock()
        self.resize(columns, lines)
        terminal = Terminal(
            stdin=sys.stdin, stdout=self._stream, stderr=self._stream, colour=True, is_drawable=True, mark=""
        )
        self.live = Live(terminal, self.clock)

    def resize(self, columns: int, lines: int) -> None:
        termios.tcsetwinsize(self._theirs, (lines, columns))
        if self.screen.columns != columns:
            self.screen.resize(columns)

    def frame(self) -> list[str]:
        self.live._draw(self.live._rows())
        self._stream.write("\0")  # else nobody knows how much of it is yet to come through the terminal
        self._stream.flush()
        drawn = b""
        while not drawn.endswith(b"\0"):
            drawn += os.read(self._ours, 1 << 20)
        return self.screen.shows(drawn.decode().rstrip("\0").replace("\r\n", "\n"))

    def close(self) -> None:
        self._stream.close()
        os.close(self._ours)


@contextmanager
def window(columns: int = 100, lines: int = 24) -> Iterator[Window]:
    ours, theirs = pty.openpty()
    window = Window(columns, lines, theirs, ours)
    try:
        yield window
    finally:
        window.close()


def _places(*states: PlaceState, at: float, zone: str = "us-east5") -> tuple[PlaceStatus, ...]:
    return tuple(
        PlaceStatus(
            zone=f"{zone}-{n}", provisioning="spot", state=state, why="no more chips " * 9, kind="stockout", since=at
        )
        for n, state in enumerate(states)
    )


def _outlook(at: Window, *states: PlaceState, replica: int = 0) -> events.Outlook:
    now = at.clock.now()
    return events.Outlook(at=now, address=f"gemma[{replica}]", places=_places(*states, at=now))


def test_no_line_is_wider_than_the_window_whatever_becomes_of_it() -> None:
    with window(columns=100) as at:
        at.live.tell(events.ChangeStarted(at=0.0, address="gemma[0]", action=Action.CREATE))
        at.live.tell(_outlook(at, *[PlaceState.REFUSED] * 4))
        assert len(at.frame()) == 9  # a line, an empty one, the heading, the titles, the table, the cursor's
        for columns in (50, 30, 44, 120):
            at.resize(columns, 24)
            at.clock.sleep(1.0)
            lines = at.frame()
            # The heading wraps in a narrow window. Nothing of a table that was drawn before is left.
            assert sum("elapsed" in line for line in lines) == 1, lines
            assert sum("us-east5-" in line for line in lines) == 4, lines
            assert max(len(line) for line in lines) < columns
            assert lines[0] == "gemma[0]: Creating..."


def test_a_low_window_keeps_room_for_the_lines_and_says_what_it_leaves_out() -> None:
    with window(lines=12) as at:
        at.live.tell(_outlook(at, *[PlaceState.FREE] * 2, *[PlaceState.REFUSED] * 5, PlaceState.QUEUED))
        lines = at.frame()
        assert len(lines) == 1 + 6 + 1
        assert " queued " in lines[2]
        assert lines[5:7] == ["  … and 3 refused (stockout)", "  not asked: 2 places"]


def test_a_line_that_became_shorter_leaves_nothing_of_the_longer_one() -> None:
    with window() as at:
        at.live.tell(_outlook(at, PlaceState.REFUSED))
        assert len(at.frame()[3]) > 90
        queued = PlaceStatus(zone="us-east5-0", provisioning="spot", state=PlaceState.QUEUED)
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=(queued,)))
        assert at.frame()[3:] == ["  us-east5-0  spot  price unknown  queued", ""]


def test_time_passes_in_the_table_and_what_ended_leaves_it() -> None:
    with window() as at:
        at.live.tell(_outlook(at, PlaceState.QUEUED))
        assert " 0s " in at.frame()[3]
        at.clock.sleep(61.0)
        heading, _, row = at.frame()[1:4]
        assert heading == "  gemma: 1m 1s elapsed, $0.00 so far at list price"
        assert " 1m 1s " in row
        at.live.tell(_outlook(at, PlaceState.PROVISIONING, replica=1))
        assert [line.split()[0] for line in at.frame()[3:-1]] == ["[1]", "[0]"]
        at.live.tell(events.ChangeDone(at=0.0, address="gemma[1]", action=Action.CREATE, elapsed=5.0))
        at.live.tell(
            events.ChangeFailed(at=0.0, address="gemma[0]", action=Action.CREATE, code="", message="", hint="")
        )
        assert at.frame() == ["gemma[1]: Creation complete after 5s", "gemma[0]: Failed", ""]


def test_the_places_that_are_not_asked_are_one_line_with_their_prices() -> None:
    with window() as at:
        now = at.clock.now()
        free = [
            PlaceStatus(zone=zone, provisioning="spot", state=PlaceState.FREE, usd_per_hour=usd, until=until)
            for zone, usd, until in [("a", 2.7, None), ("b", 1.35, now + 90), ("c", None, now + 300)]
        ]
        at.live.tell(events.Outlook(at=now, address="gemma[0]", places=tuple(free)))
        assert at.frame()[2:] == ["  not asked: 3 places, $1.35/h to $2.70/h, the next in 1m 30s", ""]


def _slice(at: Window, name: str, **fields: Any) -> PlaceStatus:
    """A slice of $3.60 per hour that was granted now."""
    now = at.clock.now()
    values = {"zone": "us-east5-b", "provisioning": "spot", "state": PlaceState.UP, "since": now, "usd_per_hour": 3.6}
    return PlaceStatus(**{**values, "name": name, "billed_since": now, **fields})


def test_the_cost_is_of_each_slice_from_its_grant_until_it_is_gone() -> None:
    with window() as at:
        before = _slice(
            at, "gemma-1", billed_since=at.clock.now() - 9000
        )  # an earlier run's, which this run did not buy
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=(before,)))
        at.clock.sleep(100)
        both = (before, _slice(at, "gemma-2"))
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=both))
        assert "$0.10 so far, $7.20/h now at list price" in at.frame()[1]
        at.clock.sleep(100)
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=both[1:]))
        at.clock.sleep(100)
        assert "$0.40 so far, $3.60/h now at list price" in at.frame()[1]
        unknown = replace(both[1], name="other-1", usd_per_hour=None)
        at.live.tell(events.Outlook(at=at.clock.now(), address="other[0]", places=(unknown,)))
        assert at.frame()[1].startswith("  2 deployments: 5m 0s elapsed, $0.40 so far")
        assert "without slices of unknown" in at.frame()[1]


@pytest.mark.parametrize(
    ("stage", "passed", "text"),
    [
        (
            BootStage(name="compiling", done=66, of=199, left_seconds=300),
            0,
            "compiling 66 of 199 ████░░░░ about 5 min left",
        ),
        (BootStage(name="compiling", done=66, of=199, left_seconds=300), 150, "66 of 199 ██████░░ about 2 min left"),
        (
            BootStage(name="compiling", done=66, of=199, left_seconds=300),
            400,
            "66 of 199 ███████░ longer than estimated",
        ),
        (BootStage(name="compiling", done=66, of=199), 0, "compiling 66 of 199 ██░░░░░░ time left unknown"),
        (BootStage(name="compiling", done=66), 0, "compiling 66 time left unknown"),
        (BootStage(name="image", done=50, of=100, left_seconds=660, is_least=True), 0, "██░░░░░░ at least 11 min left"),
    ],
)
def test_a_boot_has_a_bar_and_its_time_runs_down(stage: BootStage, passed: float, text: str) -> None:
    """The bar is the share of the time, or of the count where no time is known."""
    with window(columns=140) as at:
        booting = _slice(at, "gemma-1", billed_since=at.clock.now() - 300, stage=stage, why="pulling the image")
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=(booting,)))
        at.clock.sleep(passed)
        assert at.frame()[3].endswith(text)
        assert " starting " in at.frame()[3]


GREEN, YELLOW, RED = "\033[32m", "\033[33m", "\033[31m"


@pytest.mark.parametrize(
    ("fields", "word", "colour"),
    [
        ({"serving": True, "stage": BootStage(name="serving")}, "serving", GREEN),
        ({"serving": False, "stage": BootStage(name="serving")}, "up", YELLOW),
        ({}, "up", YELLOW),
        ({"stage": BootStage(name="starting", left_seconds=60)}, "starting", YELLOW),
        ({"stage": BootStage(name="failed")}, "failed", RED),
        ({"stage": BootStage(name="failed"), "serving": False}, "failed", RED),
    ],
)
def test_only_a_server_that_answers_is_green(fields: dict[str, Any], word: str, colour: str) -> None:
    with window() as at:
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=(_slice(at, "gemma-1", **fields),)))
        (row,) = (row for row in at.live._rows() if "us-east5-b" in row)
        assert row.startswith(colour)
        assert word in row.split()


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_the_table_of_a_hunt_by_the_width_of_the_window(columns: int) -> None:
    """Two deployments: one boots beside what it asked for, the boot of the other failed; Google's texts are wide."""
    with window(columns=columns, lines=40) as at:
        at.clock.sleep(7 * 60)
        now = at.clock.now()
        booting = _slice(
            at,
            "gemma-00000000-0-1",
            since=now - 400,
            billed_since=now - 400,
            stage=BootStage(name="compiling", done=66, of=199, left_seconds=240),
        )
        queued = replace(
            booting,
            zone="asia-southeast1-b",
            provisioning="flex-start",
            state=PlaceState.QUEUED,
            name="gemma-00000000-0-0",
            why="WAITING_FOR_RESOURCES",
            until=now + 7000,
            billed_since=None,
            stage=None,
        )
        refused = replace(
            queued, zone="us-east5-a", state=PlaceState.REFUSED, name="", kind="stockout", why="容量不足 " * 9
        )
        free = replace(
            queued, zone="us-central2-b", state=PlaceState.FREE, name="", why="", until=None, usd_per_hour=1.2
        )
        failed = replace(booting, name="second-00000000-0-0", why="The engine died.", stage=BootStage(name="failed"))
        for address, places in {"gemma[0]": (booting, queued, refused, free), "second[0]": (failed,)}.items():
            at.live.tell(events.Outlook(at=now, address=address, places=places))
        assert_golden(f"screens/live-{columns}", "\n".join(at.frame()))
        assert all(width(line) < columns for line in at.frame())
