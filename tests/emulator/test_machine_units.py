"""What a machine's systemd does for a script; its metadata and its chip in trouble."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator.machine_world import SERVE, World

RUN = 'unit() { systemd-run --quiet --collect "$@"; }\nloop() { unit --unit=loop "${@}" "$BASH" -c "$LOOP"; }\n'
LOOP = "LOOP='echo begun; while :; do sleep 10; done'\n"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    fresh = World(tmp_path)
    yield fresh
    fresh.stop()


def test_a_unit_runs_beside_the_script_and_is_gone_at_a_reboot(world: World) -> None:
    machine = world.boot(RUN + LOOP + "loop; echo over")
    assert sorted(machine.log().split()) == ["begun", "over"]
    assert machine.exit_code == 0
    world.metadata["startup-script"] = "systemctl is-active loop || echo inactive"
    machine.reboot()
    machine.settle()
    assert "inactive" in machine.log()
    assert machine.log().count("begun") == 1


def test_a_unit_that_is_killed_is_started_again_where_it_says_so(world: World) -> None:
    machine = world.boot(RUN + LOOP + "loop --property=Restart=always --property=RestartSec=5")
    machine.kill("loop")
    world.pass_time(1)
    assert machine.log().count("begun") == 1
    world.pass_time(5)
    assert machine.log().count("begun") == 2
    with pytest.raises(KeyError):
        machine.kill("other")


def test_a_unit_is_stopped_with_all_that_it_started_and_may_say_goodbye(world: World) -> None:
    trap = "LOOP='trap \"echo bye; exit 143\" TERM; while :; do timeout 100 sleep 10; done'\n"
    machine = world.boot(RUN + trap + "loop --property=Restart=on-abnormal; sleep 1; systemctl stop loop; echo stopped")
    world.pass_time(1)
    world.pass_time(30)
    assert [word for word in machine.log().split() if word != "Terminated"] == ["bye", "stopped"]


def test_a_unit_that_is_waited_for_gives_its_exit_code(world: World) -> None:
    machine = world.boot(RUN + 'unit --unit=x --pipe --wait "$BASH" -c "sleep 5; exit 3" || echo "was $?"')
    assert "was" not in machine.log()
    world.pass_time(5)
    assert "was 3" in machine.log()


def test_a_name_is_taken_while_its_unit_lives(world: World) -> None:
    machine = world.boot(RUN + LOOP + "loop; loop || echo refused; systemctl stop loop; loop && echo again")
    assert "already loaded" in machine.log()
    assert "refused" in machine.log()
    assert "again" in machine.log()


def test_a_unit_runs_nothing_from_outside_the_node(world: World, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    machine = world.boot(RUN + f"unit --unit=x /usr/bin/touch {canary} || echo refused")
    assert "not in the node's root" in machine.log()
    assert not canary.exists()


def test_a_machine_that_does_not_hear_sees_its_metadata_as_they_were_at_its_boot(world: World) -> None:
    world.metadata["flag"] = "old"
    machine = world.boot(
        "value instance/attributes/flag; sleep 10; value instance/attributes/flag", hears_changes=False
    )
    world.metadata["flag"] = "new"
    world.pass_time(10)
    assert machine.log() == "oldold"
    machine.reboot()
    machine.settle()
    assert machine.log() == "oldoldnew"


def test_a_metadata_server_goes_away_and_comes_back(world: World) -> None:
    ask = "value instance/name >/dev/null && echo here || echo away"
    machine = world.boot(f"{ask}; sleep 15; {ask}; sleep 10; {ask}", metadata_away=[10, 10])
    world.pass_time(15)
    world.pass_time(10)
    assert [word for word in machine.log().split() if word in {"here", "away"}] == ["here", "away", "here"]


def test_a_chip_is_let_go_late_and_a_server_that_does_not_wait_dies_of_it(world: World) -> None:
    look = 'find "$TPUDEPLOY_ROOT"/proc/[0-9]*/fd -lname "/dev/vfio/[0-9]*" 2>/dev/null | grep -c .'
    end = "docker rm -f vllm"
    machine = world.boot(
        f"{SERVE}; {end}; {look}; {SERVE}; docker wait vllm; docker logs vllm; {end}; sleep 20; {look} || {SERVE}; healthy",
        chip_busy=20,
    )
    world.pass_time(20)
    assert "open(/dev/vfio/0): Device or resource busy" in machine.log()
    assert machine.exit_code == 0
