"""`lifecycle.end`: nothing outlives its end, whoever looks next, and what has ended is not bought again by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import INSTANCE, PROFILE, CommandLine, Open

HOUR = 3600.0
GROUP = (
    INSTANCE.replace("v6e-1", "v5p-16")
    .replace("us-east5-a, us-east5-b, europe-west4-a", "us-east5-a")
    .replace("[spot]", "[on-demand]")
)
ENDING = f"{PROFILE}lifecycle: {{end: 24h}}\n"


def _serving(cli: Open, profile: str = ENDING) -> CommandLine:
    at = cli()
    at.write(profile)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    return at


def _until(at: CommandLine, seconds: float) -> Callable[[], None]:
    """Return a hook that presses Ctrl-C after so long."""
    began = at.clock.now()

    def stop() -> None:
        if at.clock.now() >= began + seconds:
            raise KeyboardInterrupt

    return stop


def _pass(at: CommandLine, seconds: float) -> None:
    """Let time pass by the minute, as a machine looks."""
    for _ in range(int(seconds // 60)):
        at.clock.sleep(60.0)


def test_the_next_apply_after_the_end_deletes_the_slice_and_says_why(cli: Open) -> None:
    at = _serving(cli)
    at.clock.sleep(25 * HOUR)
    plan = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert plan.code == 2
    assert "gemma[0] will be destroyed" in plan.out
    assert "its end has come" in plan.out
    applied = at.run("apply", "-auto-approve", "gemma.yaml")
    assert applied.code == 0, applied.all
    assert not at.emulator.billed()
    assert not at.slices


def test_what_has_ended_stays_ended_until_a_user_starts_it_again_for_the_whole_time(cli: Open) -> None:
    at = _serving(cli)
    at.clock.sleep(25 * HOUR)
    at.run("apply", "-auto-approve", "gemma.yaml")
    again = at.run("apply", "-auto-approve", "gemma.yaml")
    assert again.code == 0
    assert "No changes." in again.out
    assert "`tpudeploy apply -start`" in again.out
    assert len(at.requested_zones()) == 1
    started = at.run("apply", "-auto-approve", "-start", "gemma.yaml")
    assert started.code == 0, started.all
    assert list(at.slices.values()) == ["ACTIVE"]
    at.clock.sleep(20 * HOUR)
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 0
    at.clock.sleep(5 * HOUR)
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 2


def test_a_longer_end_in_the_profile_keeps_what_serves(cli: Open) -> None:
    at = _serving(cli)
    at.clock.sleep(25 * HOUR)
    at.write(ENDING.replace("24h", "48h"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert list(at.slices.values()) == ["ACTIVE"]


def test_a_changed_profile_starts_what_has_ended(cli: Open) -> None:
    at = _serving(cli)
    at.clock.sleep(25 * HOUR)
    at.run("apply", "-auto-approve", "gemma.yaml")
    at.write(ENDING.replace("24h", "2h"))
    assert "1 to add" in at.run("plan", "gemma.yaml").out


def test_a_watch_ends_with_its_deployment(cli: Open) -> None:
    at = cli()
    at.write(ENDING.replace("24h", "3h"))  # a watch looks every minute
    began = at.clock.now()
    at.clock.on_advance.append(_until(at, 10 * HOUR))
    result = at.run("apply", "-auto-approve", "-watch", "gemma.yaml")
    assert result.code == 0, result.all
    assert "lifecycle.end: 3h" in result.err
    assert not at.slices
    assert 3 * HOUR < at.clock.now() - began < 4 * HOUR


def test_a_preemption_does_not_move_the_end(cli: Open) -> None:
    at = _serving(cli)
    at.clock.sleep(20 * HOUR)
    for name in at.emulator.billed():
        at.emulator.preempt(name)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(5 * HOUR)
    assert at.run("plan", "-detailed-exitcode", "gemma.yaml").code == 2


def test_a_run_that_is_killed_while_it_ends_is_continued(cli: Open) -> None:
    at = _serving(cli)
    at.clock.sleep(25 * HOUR)
    at.clock.on_advance.append(_until(at, 1.0))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 130
    at.clock.on_advance.pop()
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert not at.slices
    assert "No changes." in at.run("plan", "gemma.yaml").out


def test_a_time_is_an_end_too_and_a_time_zone_that_does_not_exist_is_named(cli: Open) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{end: 2099-12-24 18:00 Europe/Berlin}}\n")
    assert at.run("validate", "gemma.yaml").code == 0
    at.write(f"{PROFILE}lifecycle: {{end: 2099-12-24 18:00 Europe/Munich}}\n")
    wrong = at.run("validate", "gemma.yaml")
    assert wrong.code == 1
    assert "No such time zone" in wrong.err
    assert "^" in wrong.err


@pytest.mark.parametrize("end", ["5m", "2020-12-24T18:00Z"])
def test_an_end_before_the_server_can_serve_is_an_error_on_its_line(cli: Open, end: str) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{end: {end}}}\n")
    wrong = at.run("validate", "gemma.yaml")
    assert wrong.code == 1, wrong.all
    assert "lifecycle.end" in wrong.err


def test_what_ended_has_not_drifted_and_status_says_that_it_ended(cli: Open) -> None:
    at = _serving(cli)
    assert "ends in" in at.run("status", "gemma.yaml").words
    at.clock.sleep(25 * HOUR)
    at.run("apply", "-auto-approve", "gemma.yaml")
    assert at.run("drift", "gemma.yaml").code == 0
    assert "ended" in at.run("status", "gemma.yaml").words


@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_a_machine_deletes_its_own_request_when_nobody_is_there(cli: Open, profile: str, nodes: str) -> None:
    at = cli(nodes=nodes)
    at.write(f"{profile}lifecycle: {{end: 24h}}\n")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(23 * HOUR)
    assert at.emulator.billed()
    for _ in range(70):
        at.clock.sleep(60)
    assert not at.emulator.billed()
    assert "outside of tpudeploy" not in at.run("plan", "gemma.yaml").out
    at.clock.sleep(HOUR)
    after = at.run("plan", "-detailed-exitcode", "gemma.yaml")
    assert "No changes." in after.out, after.all
    assert "ended at" in after.out


@pytest.mark.parametrize("nodes", ["simulated", "real"])
def test_the_first_machine_of_a_group_deletes_the_group_and_the_next_run_what_is_left_of_it(
    cli: Open, nodes: str
) -> None:
    at = cli(nodes=nodes)
    at.write(f"{GROUP}lifecycle: {{end: 24h}}\n")
    assert "its machine deletes it" in at.run("plan", "gemma.yaml").words
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(23 * HOUR)
    assert at.emulator.billed()
    for _ in range(70):
        at.clock.sleep(60)
    assert not at.emulator.billed()
    ended = at.run("apply", "-auto-approve", "gemma.yaml")
    assert ended.code == 0, ended.all
    assert "No changes." in at.run("plan", "gemma.yaml").out
    assert not at.emulator._cloud.group_parts


def test_a_machine_of_a_group_that_may_not_delete_it_says_so(cli: Open) -> None:
    at = cli(nodes="simulated", project={"denied_machine_permissions": ["compute.instanceGroupManagers.delete"]})
    at.write(f"{GROUP}lifecycle: {{end: 24h}}\n")
    at.run("apply", "-auto-approve", "gemma.yaml")
    at.clock.sleep(25 * HOUR)
    assert at.emulator.billed()
    assert "may not delete itself" in at.run("status", "gemma.yaml").words
    assert "compute.instanceGroupManagers.delete" in at.run("render", "gemma.yaml", "role").out


def test_a_machine_that_was_told_a_later_end_keeps_to_it(cli: Open) -> None:
    at = cli(nodes="simulated")
    at.write(ENDING)
    at.run("apply", "-auto-approve", "gemma.yaml")
    at.clock.sleep(20 * HOUR)
    at.write(ENDING.replace("24h", "48h"))
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(20 * HOUR)
    assert at.emulator.billed()
    at.clock.sleep(9 * HOUR)
    assert not at.emulator.billed()


def test_a_machine_that_may_not_delete_itself_says_so_and_the_next_run_ends_it(cli: Open) -> None:
    at = cli(nodes="simulated", project={"denied_machine_permissions": ["tpu.nodes.delete"]})
    at.write(ENDING)
    at.run("apply", "-auto-approve", "gemma.yaml")
    at.clock.sleep(25 * HOUR)
    assert at.emulator.billed()
    assert "may not delete itself" in at.run("status", "gemma.yaml").words
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert not at.emulator.billed()


def test_a_plan_says_what_it_costs_until_its_end_and_who_ends_it(cli: Open) -> None:
    at = cli()
    at.write(ENDING)
    plan = at.run("plan", "gemma.yaml").words
    assert "it ends 24h after it first serves, about $33.68 a day until then: its machine deletes it" in plan


def test_a_plan_without_an_end_says_the_price_of_a_day_and_that_nothing_ends_it(cli: Open) -> None:
    at = cli()
    at.write()
    assert "it has no end: only `tpudeploy destroy` stops it; about $33.68 a day" in at.run("plan", "gemma.yaml").words


def test_the_deletion_of_one_replica_does_not_move_the_end_of_the_others(cli: Open) -> None:
    at = _serving(cli, f"{ENDING}replicas: 2\n")
    at.clock.sleep(20 * HOUR)
    assert at.run("destroy", "-auto-approve", "-target", "gemma[1]", "gemma.yaml").code == 0
    at.clock.sleep(5 * HOUR)
    assert not at.emulator.billed()


def test_what_was_destroyed_shows_no_end(cli: Open) -> None:
    at = _serving(cli, f"{PROFILE}lifecycle: {{end: 2099-12-24T18:00Z}}\n")
    assert "ends in" in at.run("status", "gemma.yaml").words
    at.run("destroy", "-auto-approve", "gemma.yaml")
    assert "ends in" not in at.run("status", "gemma.yaml").words


@pytest.mark.parametrize(
    ("memory", "end"),
    [
        ({}, ""),
        ({"first-booted": ""}, ""),
        ({"first-booted": "17642"}, ""),
        ({"first-booted": "1764200000"}, "1764289100"),
        ({"first-booted": "1764200000", "first-served": "1764200600"}, "1764287000"),
    ],
)
def test_a_machine_that_does_not_remember_its_start_does_not_delete_itself(
    tmp_path: Path, memory: dict[str, str], end: str
) -> None:
    for name, text in memory.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    part = Path(__file__).parents[2] / "templates" / "boot" / "end.sh"
    lines = f'set -Eeuo pipefail; recall() {{ cat "{tmp_path}/$1" 2>/dev/null || true; }}; patience=2700; . "{part}"'
    command = ["bash", "-c", f"{lines}; end_time '+86400 https://tpu.googleapis.com/x lifecycle.end: 24h'"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == end


@pytest.mark.parametrize("profile", [PROFILE, INSTANCE], ids=["queued resource", "instance"])
def test_after_a_machine_deleted_itself_the_next_apply_forgets_it_also_when_a_watch_was_killed(
    cli: Open, profile: str
) -> None:
    at = cli()
    at.write(f"{profile}lifecycle: {{end: 3h}}\n")
    at.killed(HOUR, "apply", "-auto-approve", "-watch", "gemma.yaml")
    _pass(at, 3 * HOUR)
    assert not at.emulator.billed()
    for _ in range(2):
        applied = at.run("apply", "-auto-approve", "gemma.yaml")
        assert applied.code == 0, applied.all
        assert "gemma ended at" in applied.words
    assert "still running" not in at.run("cost").out
    assert "not deployed" in at.run("status", "gemma.yaml").words


def test_the_end_counts_from_when_the_machine_served_if_no_run_saw_that(cli: Open) -> None:
    at = cli()
    at.write(f"{PROFILE}lifecycle: {{end: 3h}}\n")
    at.killed(300.0, "apply", "-auto-approve", "gemma.yaml")
    _pass(at, 2 * HOUR)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert "ends in 1h" in at.run("status", "gemma.yaml").words
    _pass(at, 1.5 * HOUR)
    assert not at.emulator.billed()
    assert "No changes." in at.run("apply", "-auto-approve", "gemma.yaml").out
    assert not at.emulator.billed()
