"""Before an emulator whose time runs faster, the tool's clock is the emulator's; before a real cloud it is real."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from command_line import command

from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.domain.pace import VARIABLE, Pace
from tpudeploy.emulator import RealClock, running

DAY = 86400.0


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Pace:
    """The pace of an emulator that was started 10 real seconds ago, and runs 8,640 times as fast: a day."""
    pace = Pace(origin=time.time() - 10, speed=DAY / 10)
    monkeypatch.setenv("TPU_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.setenv(VARIABLE, pace.text())
    return pace


def test_the_clock_is_where_the_emulators_is_and_sleeps_as_long_as_it_lets_one(emulated: Pace) -> None:
    clock, began = SystemClock(), time.time()
    before = clock.now()
    clock.sleep(864.0)  # 0.1 real seconds
    assert emulated.moment(began) <= before
    assert before + 864.0 <= clock.now() <= emulated.moment(time.time())


def test_a_real_cloud_has_real_time_whatever_an_earlier_emulator_left_in_the_environment(
    emulated: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPU_EMULATOR_HOST")
    assert time.time() - 1 <= SystemClock().now() <= time.time() + 1


@pytest.mark.parametrize("setting", ["fast", "60@", "0@1790000000", "nan@1790000000", "-1@5", "60@inf", "inf@1"])
def test_a_pace_that_cannot_be_read_ends_the_command_and_says_what_sets_it(
    emulated: Pace, setting: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, setting)
    result = command(tmp_path, capfd, "status")
    assert result.code == 1
    assert f"{VARIABLE} is `{setting}`, which is not a speed and a moment" in result.all
    assert f"Unset {VARIABLE}." in result.all


def test_an_emulator_tells_its_children_the_pace_and_keeps_to_it() -> None:
    with running(clock=RealClock(speed=600.0), scenario={"nodes": "simulated"}) as cloud:
        pace = Pace.parse(cloud.environment[VARIABLE])
        assert pace.speed == 600.0
        before, now, after = time.time(), cloud.clock.now(), time.time()
        assert pace.moment(before) <= now <= pace.moment(after)
    with running(clock=RealClock(), scenario={"nodes": "simulated"}) as cloud:
        assert VARIABLE not in cloud.environment


def test_a_pace_survives_the_environment_to_the_last_digit() -> None:
    pace = Pace(origin=time.time(), speed=1 / 3)
    assert re.fullmatch(r"[\d.]+@[\d.]+", pace.text())
    assert Pace.parse(pace.text()) == pace
