"""Nothing outside a machine's root changes, nothing of a profile is executed, nothing outlives the emulator."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulator.machine_world import IMAGE, MODEL, SECRET, SERVE, World, ask
from hypothesis import given
from hypothesis import strategies as st
from real_time import DEADLINE, until

from tpudeploy.emulator.machine.docker.serve import find_serve

needs_proc = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks at processes through /proc")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    fresh = World(tmp_path / "world")
    fresh.folder.mkdir()
    yield fresh
    fresh.stop()


def record(world: World) -> dict[str, object]:
    state: dict[str, object] = json.loads((world.root / ".emulator/containers/vllm.json").read_text())
    return state


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def processes_in(folder: Path) -> list[str]:
    """Whoever has its working directory there: the script's session, its shims, the stand-ins."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.joinpath("cwd").readlink().is_relative_to(folder):
                processes.append(process.joinpath("cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return processes


def test_nothing_outside_the_root_changes(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "canary").write_text("untouched")
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(tmp_path / "HOME")
    before = tree(tmp_path)
    machine = world.boot(f"""
        sudo mkdir -p ~/made $TPUDEPLOY_ROOT/var/lib/tpudeploy && mktemp >/dev/null
        docker pull {IMAGE}
        {SERVE}
        healthy
        curl -sS -o {tmp_path}/HOME/canary http://127.0.0.1:8000/version || report output $?
        curl -sS -o $TPUDEPLOY_ROOT/version http://127.0.0.1:8000/version
        curl -sS -d @{tmp_path}/HOME/canary http://127.0.0.1:8000/v1/completions || report input $?
    """)
    assert (world.root / "version").exists(), machine.log()
    assert machine.guest_attributes == {"tpudeploy/output": "23", "tpudeploy/input": "26"}
    world.stop()

    assert tree(tmp_path) == before


def test_the_users_environment_does_not_leak(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "canary-credentials")
    machine = world.boot(f"env; {SERVE}")
    assert "canary-credentials" not in machine.log()
    assert f"TPUDEPLOY_ROOT={world.root}" in machine.log()


def test_only_the_nodes_own_commands_are_found(world: World) -> None:
    machine = world.boot("for word in python3 perl git ssh wget gcloud; do command -v $word || echo no $word; done")
    assert machine.log().splitlines() == [f"no {word}" for word in ("python3", "perl", "git", "ssh", "wget", "gcloud")]


@pytest.mark.parametrize("setup", [False, True], ids=["plain", "setup"])
def test_no_text_of_a_profile_is_executed(world: World, tmp_path: Path, setup: bool) -> None:
    trap = f"$(touch {tmp_path}/canary) `touch {tmp_path}/canary`; touch {tmp_path}/canary"
    serve = ["vllm", "serve", MODEL, "--served-model-name", trap]
    command = ["/bin/bash", "-c", 'exec "$@"', "bash", "1", f"touch {tmp_path}/canary", *serve] if setup else serve
    argv = ["docker", "run", "-d", "--name", "vllm", "--net=host", "-e", f"TRAP={trap}", IMAGE, *command]
    machine = world.boot(f"{shlex.join(argv)}; healthy; report phase serving")

    assert machine.guest_attributes["tpudeploy/phase"] == "serving", machine.log()
    assert not (tmp_path / "canary").exists()
    assert record(world)["argv"] == argv
    assert record(world)["env"] == {"TRAP": trap}
    assert ask(machine, "/v1/models").tree["data"][0]["id"] == trap


def test_a_secret_reaches_the_server_and_no_disk(world: World) -> None:
    serve = SERVE.replace("serve", "serve -e VLLM_API_KEY", 1)
    machine = world.boot(f"VLLM_API_KEY={SECRET[:9]}''{SECRET[9:]}; export VLLM_API_KEY; {serve}; healthy")
    assert ask(machine, "/v1/models", key=SECRET).status == 200
    assert ask(machine, "/v1/models").status == 401
    assert record(world)["env"] == {"VLLM_API_KEY": None}
    assert not [name for name, text in tree(world.root).items() if SECRET.encode() in text]


def test_a_setup_step_fails_as_the_scenario_says(world: World) -> None:
    argv = ["docker", "run", "-d", "--name", "vllm", "--net=host", IMAGE, "bash", "-c", "pip install x && vllm serve m"]
    machine = world.boot(f"{shlex.join(argv)}; docker wait vllm; docker logs vllm", setup_fails=True)
    assert machine.log().splitlines()[-2:] == [
        "1",
        "ERROR: a setup step failed, because the emulator's scenario says so",
    ]


def test_an_image_is_never_run_for_anything_else(world: World, tmp_path: Path) -> None:
    machine = world.boot(f"docker run -d --name vllm --net=host {IMAGE} touch {tmp_path}/canary; docker wait vllm")
    assert machine.log().splitlines()[-1] == "127"
    assert not (tmp_path / "canary").exists()


def test_a_containers_name_cannot_lead_out_of_the_root(world: World, tmp_path: Path) -> None:
    machine = world.boot(f"docker run -d --name ../../../canary --net=host {IMAGE} vllm serve m || echo exit $?")
    assert "Invalid container name (../../../canary)" in machine.log()
    assert machine.log().splitlines()[-1] == "exit 125"
    assert not list(tmp_path.rglob("canary*"))


@given(steps=st.lists(st.text(max_size=20), max_size=3), words=st.lists(st.text(max_size=20), max_size=4))
def test_what_is_served_is_read_from_the_command_whatever_stands_around_it(steps: list[str], words: list[str]) -> None:
    serve = ["vllm", "serve", *words]
    plain, wrapped = find_serve(serve), find_serve(["/bin/bash", "-c", "…", "bash", str(len(steps)), *steps, *serve])
    wrapped_with_setup = find_serve(["/bin/bash", "-c", f"pip install x && exec {shlex.join(serve)}"])

    assert [command and command.words for command in (plain, wrapped)] == [tuple(words)] * 2
    assert [command and command.has_setup for command in (plain, wrapped, wrapped_with_setup)] == [
        False,
        bool(steps),
        True,
    ]


@needs_proc
def test_stop_leaves_no_process(world: World) -> None:
    machine = world.boot(f"{SERVE}; (sleep 500; echo never) & timeout 1000 sleep 1000")
    assert len(processes_in(world.root)) >= 4
    machine.stop()
    assert processes_in(world.root) == []


OWNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from emulator.machine_world import SERVE, World
world = World(Path(sys.argv[2]))
world.boot(f"{SERVE}; healthy; (sleep 500; echo never) & timeout 1000 sleep 1000")
print("ready", flush=True)
sys.stdin.read()
raise RuntimeError("a bug of the emulator")
"""


@needs_proc
@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "SIGINT", "bug"])
def test_nothing_outlives_the_emulator_however_it_ends(tmp_path: Path, end: str) -> None:
    words = [sys.executable, "-c", OWNER, str(Path(__file__).parents[1]), str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd="/") as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        assert any("warden" in words for words in processes_in(tmp_path))
        if end != "bug":
            owner.send_signal(signal.Signals[end])
        owner.communicate(timeout=DEADLINE)
    until(lambda: not processes_in(tmp_path), log=lambda: processes_in(tmp_path))
