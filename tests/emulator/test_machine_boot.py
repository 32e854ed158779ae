"""A machine boots its startup script in its own world, on its own clock."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator.machine_world import IMAGE, MODEL, SERVE, World, ask
from real_time import until

from tpudeploy.emulator.clock import RealClock


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    fresh = World(tmp_path)
    yield fresh
    fresh.stop()


def test_a_script_serves_and_reports_through_guest_attributes(world: World) -> None:
    world.secrets["projects/demo/secrets/hf/versions/latest"] = (200, "s3cret")
    machine = world.boot(f"""
        report phase booted
        token=$(value instance/service-accounts/default/token | sed -n 's/.*"access_token": "\\([^"]*\\)".*/\\1/p')
        HF_TOKEN=$(printf 'Authorization: Bearer %s\\n' "$token" | curl -sS -f -H @- \\
          https://secretmanager.googleapis.com/v1/projects/demo/secrets/hf/versions/latest:access \\
          | sed -n 's/.*"data": "\\([^"]*\\)".*/\\1/p' | base64 -d)
        report secret "${{#HF_TOKEN}}"
        docker pull {IMAGE}
        export HF_TOKEN
        {SERVE.replace("serve", "serve -e HF_TOKEN", 1)}
        healthy
        report phase serving
    """)

    assert machine.guest_attributes == {"tpudeploy/phase": "serving", "tpudeploy/secret": "6"}
    assert machine.exit_code == 0, machine.log()
    assert ask(machine, "/v1/models").tree["data"][0]["id"] == MODEL


def test_the_script_sleeps_until_the_clock_moves(world: World) -> None:
    machine = world.boot("report phase before; sleep 2m; report phase after")
    assert machine.guest_attributes["tpudeploy/phase"] == "before"

    world.pass_time(119)
    assert machine.guest_attributes["tpudeploy/phase"] == "before"

    world.pass_time(1)
    assert machine.guest_attributes["tpudeploy/phase"] == "after"


def test_time_stands_while_one_of_two_jobs_still_computes(world: World) -> None:
    machine = world.boot("""
        sleep 1000 &
        for turn in $(seq 300); do cat /dev/null; done
        sleep 10
        report phase second
    """)
    world.pass_time(10)
    assert machine.guest_attributes["tpudeploy/phase"] == "second"


def test_the_server_boots_in_the_scenarios_seconds(world: World) -> None:
    machine = world.boot(f"{SERVE}; healthy; report phase serving", boot_seconds=600)
    world.pass_time(590, steps=5)
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(machine, "/health")
    assert "tpudeploy/phase" not in machine.guest_attributes

    world.pass_time(15)
    assert ask(machine, "/health").status == 200
    world.pass_time(5)
    assert machine.guest_attributes["tpudeploy/phase"] == "serving"


def test_a_real_clock_needs_no_push(world: World) -> None:
    machine = world.machine(
        f"sleep 0.05; {SERVE}; PAUSE=0.1 healthy; report phase serving", clock=RealClock(), boot_seconds=0.1
    )
    machine.boot()
    while machine.exit_code is None:
        machine.settle()
    assert machine.guest_attributes["tpudeploy/phase"] == "serving", machine.log()


def test_a_failing_script_leaves_its_exit_code_and_its_words(world: World) -> None:
    machine = world.boot("echo about to break; exit 3")
    assert machine.exit_code == 3
    assert "about to break" in machine.log()


def test_a_machine_without_a_script_boots(world: World) -> None:
    machine = world.machine("")
    del world.metadata["startup-script"]
    machine.boot()
    machine.settle()
    assert machine.log() == ""
    assert machine.exit_code is None


def test_reboot_runs_the_script_again_empties_memory_and_keeps_the_disk(world: World) -> None:
    machine = world.boot(f"""
        count=$(cat $TPUDEPLOY_ROOT/var/lib/count 2>/dev/null || echo 0)
        echo $((count + 1)) >$TPUDEPLOY_ROOT/var/lib/count
        in_memory=$(ls $TPUDEPLOY_ROOT/dev/shm $TPUDEPLOY_ROOT/run | grep -c weights || true)
        touch $TPUDEPLOY_ROOT/dev/shm/weights $TPUDEPLOY_ROOT/run/weights
        report boots "$((count + 1)), files in memory: $in_memory"
        docker rm -f vllm
        {SERVE}
        healthy
    """)
    first = ask(machine, "/v1/models").tree
    machine.reboot()
    machine.settle()

    assert machine.guest_attributes == {"tpudeploy/boots": "2, files in memory: 0"}
    assert ask(machine, "/v1/models").tree["data"][0]["id"] == first["data"][0]["id"]


def test_reboot_forgets_who_slept_before(world: World) -> None:
    machine = world.boot("""
        report phase asleep
        curl -sS --retry 9 --retry-delay 100 --retry-connrefused http://127.0.0.1:8000/health || report phase late
    """)
    world.pass_time(800, steps=8)
    machine.reboot()
    machine.settle()
    world.pass_time(800, steps=8)
    assert machine.guest_attributes["tpudeploy/phase"] == "asleep"
    world.pass_time(100)
    assert machine.guest_attributes["tpudeploy/phase"] == "late"


def test_a_machine_boots_once(world: World) -> None:
    machine = world.boot("true")
    with pytest.raises(RuntimeError, match="node has booted already"):
        machine.boot()
    machine.stop()
    with pytest.raises(RuntimeError, match="node has booted already"):
        machine.boot()
    with pytest.raises(RuntimeError, match="node is not running"):
        machine.reboot()


def test_stop_ends_everything_and_may_be_called_twice(world: World) -> None:
    machine = world.boot(f"echo hello; {SERVE}; sleep 1000")
    machine.stop()
    machine.stop()

    assert not world.root.exists()
    assert "hello" in machine.log()
    with pytest.raises(urllib.error.URLError):
        ask(machine, "/health")


def test_a_script_that_never_waits_is_named(world: World) -> None:
    machine = world.machine("echo spinning; while :; do :; done")
    machine.boot()
    until(lambda: "spinning" in machine.log())
    with pytest.raises(TimeoutError, match=r"(?s)node: after 0.5 s the startup script neither ended.*spinning"):
        machine.settle(patience=0.5)


def test_a_root_that_holds_something_is_refused(world: World) -> None:
    machine = world.machine("true")
    world.root.mkdir()
    (world.root / "precious").touch()
    with pytest.raises(FileExistsError, match="not empty"):
        machine.boot()
    machine.stop()
    assert (world.root / "precious").exists()


def test_a_firewalled_server_answers_its_own_machine_alone(world: World) -> None:
    machine = world.boot(f"{SERVE}; healthy; report phase serving", reachable=False)
    assert machine.guest_attributes["tpudeploy/phase"] == "serving"
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(machine, "/health")


def test_a_server_told_to_listen_on_loopback_is_not_seen_from_outside(world: World) -> None:
    machine = world.boot(f"{SERVE} --host=127.0.0.1; healthy; report phase serving")
    assert machine.guest_attributes["tpudeploy/phase"] == "serving"
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(machine, "/health")


def test_a_system_with_one_loopback_address_gets_a_port_per_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emulator.machine_world.ADDRESSES", iter(["127.0.0.1"]))
    machine = world.boot(f"{SERVE}; healthy; report phase serving")
    assert machine.guest_attributes["tpudeploy/phase"] == "serving"
    assert machine.address == "127.0.0.1"
    assert machine.port_for(8000) != 8000
    assert ask(machine, "/health").status == 200


def test_a_metadata_change_wakes_who_waits_for_it(world: World) -> None:
    machine = world.boot("""
        report spec "$(curl -sS -H 'Metadata-Flavor: Google' \\
          "$metadata/instance/attributes/tpudeploy-spec?wait_for_change=true&last_etag=0&timeout_sec=60" || true)"
        report spec "$(curl -sS -H 'Metadata-Flavor: Google' "$metadata/instance/attributes/?recursive=true&wait_for_change=true")"
    """)
    assert machine.guest_attributes["tpudeploy/spec"] == "Not Found"
    world.metadata["tpudeploy-spec"] = "abc"
    machine.settle()
    assert '"tpudeploy-spec": "abc"' in machine.guest_attributes["tpudeploy/spec"]


def test_a_wait_for_metadata_ends_with_its_timeout(world: World) -> None:
    machine = world.boot("""
        curl -sS -H 'Metadata-Flavor: Google' "$metadata/instance/attributes/x?wait_for_change=true&timeout_sec=60"
        report phase over
    """)
    assert not machine.guest_attributes
    world.pass_time(60)
    assert machine.guest_attributes == {"tpudeploy/phase": "over"}
