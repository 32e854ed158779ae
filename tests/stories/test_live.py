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
from pathlib import Path

import pytest
from command_line import PROFILE
from pseudo_terminal import INTERRUPT, person
from screen import Screen

from tpudeploy.cli.live import Live
from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import events
from tpudeploy.domain.plan import Action
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.emulator import Emulator, RealClock, VirtualClock, running

QUICK = dict.fromkeys(("queued", "provisioning", "boot", "deleting", "suspending"), 0.1) | {"waiting": 1.5}
HASTE = {"TPUDEPLOY_PATIENCE_POLL_FIRST": "0.05", "TPUDEPLOY_PATIENCE_POLL_MANY": "0.1"}
FULL = {"fault": "stockout", "zone": "us-east5-a"}
TWO = PROFILE.replace("requests: 1", "requests: 2")
IN_TABLE = re.compile("lapses in|again in|not asked$")


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
        *_, table = "\n".join(screen.shows(during.rpartition("\n")[0])).partition("\n\n  us-")
        somebody.waits_for("In the queue")
        cloud.grant(next(name for zone in cloud.live().values() for name in zone))
        assert somebody.stays_to_the_end() == 0
    rows = [" ".join(row.split()) for row in f"us-{table}".splitlines()]
    assert re.match(r"us-east5-b spot (asked|queued) \d+s lapses in (2h 0m|1h 59m)", rows[0]), rows
    refused = r"us-east5-a spot refused \d+s again in (\d+s|\dm \d+s) There is no m"
    assert any(re.match(refused, row) for row in rows), rows
    after = Screen(80).shows(somebody.read)
    assert not any(map(IN_TABLE.search, after))
    *run, empty = after[after.index("gemma[0]: Creating...") : after.index("Outputs:") - 2]
    assert all(line.startswith(("gemma[0]: ", "  There is no more capacity")) for line in run), run
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
    *_, last, error, hint, end = rows = Screen(80).shows(somebody.read)
    assert any(line.startswith("Interrupted: no new step starts") for line in rows)
    assert last.startswith("gemma: Still outstanding: ")
    assert error.startswith("Error: Interrupted.")
    assert (hint[:2], end) == ("  ", "")


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
        terminal = Terminal(stdin=sys.stdin, stdout=self._stream, stderr=self._stream, colour=True, is_drawable=True)
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
        assert len(at.frame()) == 7  # a line, an empty one, the table, the cursor's
        for columns in (50, 30, 44, 120):
            at.resize(columns, 24)
            at.clock.sleep(1.0)
            lines = at.frame()
            assert len(lines) == 7, lines
            assert max(len(line) for line in lines) < columns
            assert lines[0] == "gemma[0]: Creating..."


def test_a_low_window_keeps_room_for_the_lines_and_says_what_it_leaves_out() -> None:
    with window(lines=10) as at:
        at.live.tell(_outlook(at, *[PlaceState.FREE] * 2, *[PlaceState.REFUSED] * 5, PlaceState.QUEUED))
        lines = at.frame()
        assert len(lines) == 1 + 5 + 1
        assert " queued " in lines[1]
        assert lines[5] == "  … and 4 more: 2 refused (stockout), 2 not asked"


def test_a_line_that_became_shorter_leaves_nothing_of_the_longer_one() -> None:
    with window() as at:
        at.live.tell(_outlook(at, PlaceState.REFUSED))
        assert len(at.frame()[1]) > 90
        free = PlaceStatus(zone="us-east5-0", provisioning="spot", state=PlaceState.FREE)
        at.live.tell(events.Outlook(at=at.clock.now(), address="gemma[0]", places=(free,)))
        assert at.frame() == ["", "  us-east5-0  spot  not asked", ""]


def test_time_passes_in_the_table_and_what_ended_leaves_it() -> None:
    with window() as at:
        at.live.tell(_outlook(at, PlaceState.QUEUED))
        assert " 0s " in at.frame()[1]
        at.clock.sleep(61.0)
        assert " 1m 1s " in at.frame()[1]
        at.live.tell(_outlook(at, PlaceState.PROVISIONING, replica=1))
        assert [line.split()[0] for line in at.frame()[1:-1]] == ["gemma[1]", "gemma[0]"]
        at.live.tell(events.ChangeDone(at=0.0, address="gemma[1]", action=Action.CREATE, elapsed=5.0))
        at.live.tell(
            events.ChangeFailed(at=0.0, address="gemma[0]", action=Action.CREATE, code="", message="", hint="")
        )
        assert at.frame() == ["gemma[1]: Creation complete after 5s", "gemma[0]: Failed", ""]
