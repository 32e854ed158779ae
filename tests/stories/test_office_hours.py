"""`lifecycle.hours`: up in the morning, down at night, by the machine, the next run or a watch, whoever is there."""

from __future__ import annotations

import sys
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

HOUR, DAY = 3600.0, 24 * 3600.0


def _hours(at: CommandLine, profile: str = PROFILE, *, opens: float = -1.0, closes: float = 8.0) -> None:
    """Write a profile with hours that open and close so many hours from now, each day."""
    now = at.clock.now() // 60 * 60
    times = (datetime.fromtimestamp(now + hours * HOUR, UTC).strftime("%H:%M") for hours in (opens, closes))
    at.write(f"{profile}lifecycle: {{hours: {'-'.join(times)} UTC}}\n")


def _until(at: CommandLine, seconds: float) -> Callable[[], None]:
    """Return a hook that presses Ctrl-C after so long."""
    began = at.clock.now()

    def stop() -> None:
        if at.clock.now() >= began + seconds:
            raise KeyboardInterrupt

    return stop


def test_a_scheduled_apply_ends_it_at_night_and_starts_it_in_the_morning(cli: Open) -> None:
    at = cli()
    _hours(at)
    plan = at.run("plan", "gemma.yaml").words
    assert "it runs" in plan
    assert "its machine deletes it, if its service account may" in plan
    assert "`apply -watch` or a scheduled `apply` starts it again; nothing else does" in plan
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert "ends in" in at.run("status", "gemma.yaml").words
    assert "lifecycle.hours" in at.run("status", "gemma.yaml").words
    at.clock.sleep(9 * HOUR)
    night = at.run("apply", "-auto-approve", "gemma.yaml")
    assert night.code == 0, night.all
    assert not at.emulator.billed()
    assert "outside of its hours" in at.run("plan", "-detailed-exitcode", "gemma.yaml").words
    assert "outside of its hours" in at.run("status", "gemma.yaml").words
    at.clock.sleep(14.5 * HOUR)
    assert "1 to add" in at.run("plan", "gemma.yaml").out
    morning = at.run("apply", "-auto-approve", "gemma.yaml")
    assert morning.code == 0, morning.all
    assert list(at.slices.values()) == ["ACTIVE"]


@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_the_machine_ends_it_at_night_when_nobody_is_there(cli: Open, profile: str, nodes: str) -> None:
    at = cli(nodes=nodes)
    _hours(at, profile)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(7 * HOUR)
    assert at.emulator.billed()
    for _ in range(70):
        at.clock.sleep(60)
    assert not at.emulator.billed()
    at.clock.sleep(HOUR)
    assert "No changes." in at.run("plan", "gemma.yaml").out


def test_outside_of_its_hours_nothing_is_requested(cli: Open) -> None:
    at = cli()
    _hours(at, opens=2.0)
    plan = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert plan.code == 0, plan.all
    assert "outside of its hours" in plan.words
    assert at.run("apply", "-auto-approve", "-start", "gemma.yaml").code == 0
    assert not at.requested_zones()


def test_a_watch_ends_it_at_night_and_starts_it_in_the_morning_for_days(cli: Open) -> None:
    at = cli()
    _hours(at, closes=2.0)
    seen: list[tuple[float, bool]] = []
    began = at.clock.now()
    at.clock.on_advance += [
        lambda: seen.append((at.clock.now() - began, bool(at.emulator.billed()))),
        _until(at, 2.5 * DAY),
    ]
    result = at.run("apply", "-auto-approve", "-watch", "gemma.yaml")
    assert result.code == 130, result.all
    nights = [is_billed for after, is_billed in seen if 3 * HOUR < after % DAY < 22.5 * HOUR]
    assert not any(nights)
    for day in (1, 2):
        assert any(is_billed for after, is_billed in seen if day * DAY < after < day * DAY + 2 * HOUR)
    assert "Hours started (lifecycle.hours" in result.all


def test_nights_count_for_an_end_and_what_has_ended_stays_ended_in_the_morning(cli: Open) -> None:
    at = cli()
    _hours(at)
    at.write((at.folder / "gemma.yaml").read_text("utf-8").replace("{hours", "{end: 36h, hours"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(DAY)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.emulator.billed()
    at.clock.sleep(DAY)
    ended = at.run("apply", "-auto-approve", "gemma.yaml")
    assert ended.code == 0, ended.all
    assert not at.emulator.billed()
    assert "`tpudeploy apply -start`" in at.run("plan", "gemma.yaml").words


def test_a_newer_version_that_adds_a_default_and_another_pin_start_nothing_that_has_ended(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{end: 24h}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(25 * HOUR)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    from tpudeploy.planning import resolve

    attributes = resolve._attributes
    added = {"serving.of_a_later_version": True, "serving.image_digest": f"sha256:{'a' * 64}"}
    monkeypatch.setattr(resolve, "_attributes", lambda *given: [*attributes(*given), *added.items()])
    assert "No changes." in at.run("plan", "gemma.yaml").out


@pytest.mark.parametrize(
    ("hours", "message"),
    [
        ("Mon-Fri 08:00-19:00 Europe/Munich", "No such time zone"),
        ("Mon-Fri 08:00-19:00", "does not have the required form"),
        ("Mon-Fri 08:00-19:00 GMT+2", "does not have the required form"),
        ("Mon-Fri 08:00-19:00 +02:00", "does not have the required form"),
        ("Mon-Fri 08:00-19:00 ../etc/passwd", "does not have the required form"),
        ("Mon-Fri 08:00-19:00 CEST", "No such time zone"),
        ("mon-fri 08:00-19:00 UTC", "does not have the required form"),
        ("08:00-12:00,13:00-19:00 UTC", "does not have the required form"),
        ("Mon-Fri 08:00-08:00 UTC", "does not have the required form"),
        ("00:00-24:00 UTC", "does not have the required form"),
        ("08:00-08:05 UTC", "lifecycle.hours"),
    ],
)
def test_hours_that_cannot_be_kept_are_an_error_on_their_line(cli: Open, hours: str, message: str) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{hours: '{hours}'}}\n")
    wrong = at.run("validate", "gemma.yaml")
    assert wrong.code == 1, wrong.all
    assert message in wrong.err
    assert "^" in wrong.err


def test_a_plan_warns_if_only_this_computer_starts_it_in_the_morning(cli: Open) -> None:
    at = cli()
    _hours(at)
    plan = at.run("plan", "gemma.yaml")
    assert "Only an apply on this computer starts gemma again in its hours" in plan.all
    assert "TPU3024" in plan.all
    at.write()
    assert "TPU3024" not in at.run("plan", "gemma.yaml").all
    _hours(at)
    assert "TPU3024" not in at.run("plan", "gemma.yaml", "--backend", "gs://states/team").all


@pytest.mark.parametrize(
    "hours",
    [
        "Mon-Fri 08:00-19:00 Europe/Kyiv",
        "Fri-Mon 22:00-06:00 UTC",
        "08:00-24:00 Etc/GMT-2",
        "Mon,Mon-Wed 08:00-19:00 UTC",
    ],
)
def test_odd_hours_that_can_be_kept_are_taken(cli: Open, hours: str) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{hours: '{hours}'}}\n")
    assert at.run("validate", "gemma.yaml").code == 0


def test_without_a_database_of_time_zones_utc_works_and_others_say_what_to_install(
    cli: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = cli()
    monkeypatch.setitem(sys.modules, "tzdata", None)
    zoneinfo.reset_tzpath(())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        # No other test has this zone: a thread that one of them left cannot bring it back into the cache.
        at.write(f"{PROFILE}lifecycle: {{hours: 'Mon-Fri 08:00-19:00 America/Argentina/Ushuaia'}}\n")
        assert "pip install tzdata" in at.run("validate", "gemma.yaml").err
        at.write(f"{PROFILE}lifecycle: {{hours: 'Mon-Fri 08:00-19:00 UTC'}}\n")
        assert at.run("validate", "gemma.yaml").code == 0
    finally:
        zoneinfo.reset_tzpath()
