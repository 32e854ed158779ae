"""`lifecycle.idle` within `lifecycle.hours`: idle is down until the next opening, or until `apply -start`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

MINUTE, HOUR, DAY = 60.0, 3600.0, 24 * 3600.0
APIS = {"queued resource": PROFILE, "instance": INSTANCE.replace("[spot]", "[on-demand]")}
DENIED = {"denied_machine_permissions": ["tpu.nodes.delete", "compute.instances.delete"]}


def _profile(at: CommandLine, profile: str, lifecycle: str = "idle: 30m") -> None:
    """Write a profile whose hours began an hour ago and last for eight more, each day."""
    now = at.clock.now() // 60 * 60
    opens, closes = (datetime.fromtimestamp(now + hours * HOUR, UTC).strftime("%H:%M") for hours in (-1, 8))
    at.write(f"{profile}lifecycle: {{{lifecycle}, hours: '{opens}-{closes} UTC'}}\n")


def _serving(cli: Open, api: str, lifecycle: str = "idle: 30m", **scenario: object) -> CommandLine:
    at = cli(**scenario)
    _profile(at, APIS[api], lifecycle)
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    return at


def _pass(at: CommandLine, seconds: float) -> None:
    for _ in range(round(seconds / MINUTE)):
        at.clock.sleep(MINUTE)


def _apply(at: CommandLine) -> None:
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all


def _schedule(at: CommandLine, seconds: float) -> None:
    for _ in range(round(seconds / (10 * MINUTE))):
        _pass(at, 10 * MINUTE)
        _apply(at)


def _nobody(at: CommandLine) -> None:
    _pass(at, 12 * HOUR)


def _in_the_pause(at: CommandLine) -> None:
    _pass(at, 3 * HOUR)
    _apply(at)
    _pass(at, 9 * HOUR)


def _at_night(at: CommandLine) -> None:
    _pass(at, 11 * HOUR)
    _apply(at)
    _pass(at, HOUR)


def _each_ten_minutes(at: CommandLine) -> None:
    _schedule(at, 12 * HOUR)


def _watch(at: CommandLine) -> None:
    end = at.clock.now() + 12 * HOUR

    def stop() -> None:
        if at.clock.now() >= end:
            raise KeyboardInterrupt

    at.clock.on_advance.append(stop)
    assert at.run("apply", "-auto-approve", "-watch", "gemma.yaml").code == 130
    at.clock.on_advance.remove(stop)


WATCHERS: dict[str, Callable[[CommandLine], None]] = {
    "nobody": _nobody,
    "an apply in the pause": _in_the_pause,
    "an apply at night": _at_night,
    "an apply each ten minutes": _each_ten_minutes,
    "apply -watch": _watch,
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("who", WATCHERS)
def test_what_was_idle_in_its_hours_is_down_until_the_next_opening_no_matter_who_looks_first(
    cli: Open, who: str, api: str
) -> None:
    at = _serving(cli, api)
    at.write((at.folder / "gemma.yaml").read_text("utf-8").replace("gemma\n", "second\n", 1), "second.yaml")
    plan = at.run("plan", "second.yaml").words
    assert "it ends after 30m without a request, until its hours begin again: its machine deletes it" in plan
    requests = len(at.requested_zones())
    WATCHERS[who](at)
    assert not at.emulator.billed()
    assert len(at.requested_zones()) == requests, "it was not requested again in the pause"
    night = at.run("status", "gemma.yaml").words
    assert "lifecycle.idle: 30m" in night
    assert "lifecycle.hours" not in night
    assert "The first `apply` from 2026-09-22" in night
    # The next opening is 23 hours after the first apply.
    _pass(at, 10 * HOUR)
    _apply(at)
    assert not at.emulator.billed(), "an hour before it opens"
    _pass(at, HOUR + 5 * MINUTE)
    assert "1 to add" in at.run("plan", "gemma.yaml").out
    _apply(at)
    assert len(at.emulator.billed()) == 1
    # The idle time of yesterday ends nothing today.
    _pass(at, 20 * MINUTE)
    _apply(at)
    assert len(at.emulator.billed()) == 1
    _pass(at, 20 * MINUTE)
    assert not at.emulator.billed()


@pytest.mark.parametrize("api", APIS)
def test_nobody_looks_until_the_next_day_and_it_starts(cli: Open, api: str) -> None:
    at = _serving(cli, api)
    _pass(at, DAY)
    assert not at.emulator.billed()
    _apply(at)
    assert len(at.emulator.billed()) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_machine_that_went_at_closing_is_not_taken_for_idle_on_the_next_day(cli: Open, api: str) -> None:
    at = _serving(cli, api, "idle: 8h")
    _pass(at, DAY)
    assert not at.emulator.billed()
    _apply(at)
    assert len(at.emulator.billed()) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_machine_that_may_not_delete_itself_is_deleted_by_the_next_run_and_starts_at_the_next_opening(
    cli: Open, api: str
) -> None:
    at = _serving(cli, api, project=DENIED)
    _pass(at, 3 * HOUR)
    assert at.emulator.billed()
    _apply(at)
    assert not at.emulator.billed()
    assert "idle for 1" in at.run("status", "gemma.yaml").words
    _pass(at, 20.5 * HOUR)
    _apply(at)
    assert len(at.emulator.billed()) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_machine_that_nobody_deleted_at_night_has_its_idle_time_from_the_opening_on(cli: Open, api: str) -> None:
    at = _serving(cli, api, project=DENIED)
    _pass(at, 23 * HOUR)
    _apply(at)
    assert len(at.emulator.billed()) == 1
    _pass(at, 20 * MINUTE)
    _apply(at)
    assert not at.emulator.billed()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("was_seen", [True, False], ids=["seen", "unseen"])
def test_a_person_starts_it_in_the_pause(cli: Open, api: str, was_seen: bool) -> None:
    at = _serving(cli, api)
    _pass(at, 2 * HOUR)
    if was_seen:
        _apply(at)
    plan = at.run("plan", "gemma.yaml")
    assert "`tpudeploy apply -start` starts it now" in plan.words
    started = at.run("apply", "-auto-approve", "-start", "gemma.yaml")
    assert started.code == 0, started.all
    assert len(at.emulator.billed()) == 1
    _pass(at, 20 * MINUTE)
    _apply(at)
    assert len(at.emulator.billed()) == 1
    _pass(at, 20 * MINUTE)
    _apply(at)
    assert not at.emulator.billed()


def test_a_watch_keeps_what_a_person_starts_in_the_pause(cli: Open) -> None:
    at = cli()
    _profile(at, PROFILE)
    begin = at.clock.now()
    pending = [3 * HOUR]
    billed: list[float] = []

    def live() -> None:
        after = at.clock.now() - begin
        if pending and after >= pending[0]:
            pending.clear()
            at.run("apply", "-auto-approve", "-start", "gemma.yaml")
        if at.emulator.billed():
            billed.append(after)
        if after >= 5 * HOUR:
            raise KeyboardInterrupt

    at.clock.on_advance.append(live)
    assert at.run("apply", "-auto-approve", "-watch", "gemma.yaml").code == 130
    assert any(3 * HOUR < after < 4 * HOUR for after in billed)
    assert not any(after > 4 * HOUR for after in billed)


@pytest.mark.parametrize("was_seen", [True, False], ids=["seen", "unseen"])
def test_its_end_stays_the_end_whoever_saw_that_it_was_idle(cli: Open, was_seen: bool) -> None:
    at = _serving(cli, "queued resource", "idle: 30m, end: 4h")
    _pass(at, 2 * HOUR)
    if was_seen:
        _apply(at)
        assert "`tpudeploy apply -start`" in at.run("status", "gemma.yaml").words
    _pass(at, DAY)
    _apply(at)
    assert not at.emulator.billed()
    assert at.run("apply", "-auto-approve", "-start", "gemma.yaml").code == 0
    assert len(at.emulator.billed()) == 1
