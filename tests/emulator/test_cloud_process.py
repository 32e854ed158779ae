"""The emulator as a process: one a user, one for a command, and nothing left behind however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from command_line import PROFILE
from googleapiclient.discovery import build
from real_time import DEADLINE, until

from tpudeploy.domain.errors import UsageError
from tpudeploy.emulator import process
from tpudeploy.emulator.emulator import FOLDER

SERVE = """
import sys
from pathlib import Path
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.emulator import process
try:
    process.serve(on_ready=lambda e: print(e.host, flush=True), port=0, scenario=Path(sys.argv[1]), speed=20)
except TpudeployError as error:
    raise SystemExit(f"{type(error).__name__}: {error.message}") from None
"""
RUN = """
import sys
from tpudeploy.emulator import process
raise SystemExit(process.run(sys.argv[1:]))
"""
IN_PROC = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of our own, so that a user's emulator is none of our business."""
    for variable in ("XDG_RUNTIME_DIR", "TMPDIR"):
        folder = tmp_path / variable.lower()
        folder.mkdir()
        monkeypatch.setenv(variable, str(folder))
    return tmp_path


@contextmanager
def started(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def first_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def scenario(home: Path, text: str = "nodes: simulated\n") -> str:
    file = home / "scenario.yaml"
    file.write_text(text)
    return str(file)


def processes_of(home: Path) -> list[str]:
    """Command lines of every process that speaks of our folder, or has it as its working folder."""
    lines = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            where = (folder / "cwd").readlink()
        except (OSError, ValueError):
            continue
        if str(home / "tmpdir") in f"{line} {where}":
            lines.append(line)
    return lines


def has_ended(pid: int) -> bool:
    """Gone, or a zombie that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def test_a_folder_that_its_owner_removes_at_this_moment_ends_no_emulator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Path, "glob", lambda *_: iter([tmp_path / f"{FOLDER}1-removed"]))
    process._sweep()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end_and_leaves_nothing(home: Path, number: signal.Signals) -> None:
    with started(SERVE, scenario(home)) as child:
        host = first_line(child)
        with urlopen(f"http://{host}/") as answer:
            assert answer.status == 200
        child.send_signal(number)
        assert child.wait(DEADLINE) == 0
    assert list((home / "tmpdir").iterdir()) == []


def test_a_second_start_says_who_runs_and_a_crashed_one_holds_nothing(home: Path) -> None:
    with started(SERVE, scenario(home)) as child:
        host = first_line(child)
        with started(SERVE, scenario(home)) as second:
            _, output = second.communicate(timeout=DEADLINE)
        assert output.strip() == f"EmulatorRunning: The emulator runs already: process {child.pid} at {host}."
        child.kill()
        child.wait(DEADLINE)
    with started(SERVE, scenario(home)) as third:
        assert first_line(third).startswith("127.0.0.1:")
        assert [folder.name.split("-")[2] for folder in (home / "tmpdir").iterdir()] == [str(third.pid)]


def test_a_taken_port_is_said_plainly(home: Path) -> None:
    with started(SERVE, scenario(home)) as child:
        port = first_line(child).rpartition(":")[2]
        code = SERVE.replace("port=0", f"port={port}")
        other = {**os.environ, "XDG_RUNTIME_DIR": str(home)}
        with pytest.raises(subprocess.CalledProcessError) as caught:
            subprocess.run(
                [sys.executable, "-c", code, scenario(home)], env=other, check=True, capture_output=True, text=True
            )
        assert f"UsageError: The emulator cannot listen on port {port}" in caught.value.stderr


@IN_PROC
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_emulator_takes_its_machines_along_however_it_ends(home: Path, number: signal.Signals) -> None:
    script = "sleep 1000\n"
    with started(SERVE, scenario(home, "nodes: real\n")) as child:
        host = first_line(child)
        grow(host, script)
        until(lambda: any("warden" in line for line in processes_of(home)))
        child.send_signal(number)
        child.wait(DEADLINE)
        until(lambda: not processes_of(home), log=lambda: processes_of(home))


def grow(host: str, script: str) -> None:
    """One slice, asked for over plain HTTP."""
    import httplib2

    where = "projects/p/locations/us-east5-b"
    node = {"acceleratorType": "v6e-1", "runtimeVersion": "v2-alpha-tpuv6e", "metadata": {"startup-script": script}}
    body = {"tpu": {"nodeSpec": [{"parent": where, "nodeId": "a", "node": node}]}}
    client = httplib2.Http()
    with build(
        "tpu",
        "v2",
        http=client,
        static_discovery=True,
        cache_discovery=False,
        client_options={"api_endpoint": f"http://{host}"},
    ) as tpu:
        tpu.projects().locations().queuedResources().create(parent=where, queuedResourceId="a", body=body).execute()


def test_a_command_finds_its_emulator_and_its_exit_code_is_ours(home: Path) -> None:
    command = textwrap.dedent("""
        import json, os, sys, urllib.request
        body = urllib.request.urlopen(f"http://{os.environ['TPU_EMULATOR_HOST']}/").read().decode()
        print(json.dumps([body, os.environ["GOOGLE_CLOUD_PROJECT"]]))
        sys.exit(7)
    """)
    with started(RUN, sys.executable, "-c", command) as child:
        body, project = json.loads(first_line(child))
        assert child.wait(DEADLINE) == 7
    assert "emulator" in body
    assert project == os.environ.get("GOOGLE_CLOUD_PROJECT", "emulated")
    assert list((home / "tmpdir").iterdir()) == []


def test_a_command_that_dies_of_a_signal_gives_the_shell_s_code(home: Path) -> None:
    with started(RUN, "sh", "-c", "kill -9 $$") as child:
        assert child.wait(DEADLINE) == 137


def test_a_command_that_does_not_exist_is_a_usage_error(home: Path) -> None:
    with pytest.raises(UsageError, match="no-such-command"):
        process.run(["no-such-command"])


def test_ctrl_c_ends_the_command_and_then_the_emulator(home: Path) -> None:
    with started(RUN, "sh", "-c", "echo ready; exec sleep 1000") as child:
        assert first_line(child) == "ready"
        os.killpg(child.pid, signal.SIGINT)  # a terminal tells the whole group
        assert child.wait(DEADLINE) == 128 + signal.SIGINT
    assert list((home / "tmpdir").iterdir()) == []


@IN_PROC
def test_ending_the_emulator_ends_its_command(home: Path) -> None:
    with started(RUN, "sh", "-c", "echo $$; exec sleep 1000") as child:
        inner = int(first_line(child))
        child.terminate()
        assert child.wait(DEADLINE) == 128 + signal.SIGTERM
        until(lambda: has_ended(inner))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_killing_the_emulator_ends_its_command(home: Path) -> None:
    with started(RUN, "sh", "-c", "echo $$; exec sleep 1000") as child:
        inner = int(first_line(child))
        child.kill()
        child.wait(DEADLINE)
        until(lambda: has_ended(inner))


A_RUN_THAT_ENDS = """
tpudeploy apply -auto-approve -json gemma.yaml > applied
tpudeploy status > serving
sleep 25
tpudeploy status > ended
tpudeploy plan -detailed-exitcode gemma.yaml > planned || test $? -eq 2
tpudeploy destroy -auto-approve gemma.yaml
"""


@pytest.mark.long
def test_a_flex_start_run_ends_while_somebody_watches(home: Path) -> None:
    """Two hours pass in 24 real seconds, for Google, its machines and each command alike."""
    profile = PROFILE.replace("provisioning: [spot]", "provisioning: [flex-start]\n  max_run_duration: 2h")
    (home / "gemma.yaml").write_text(profile)
    scenario(home)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["tpudeploy", "emulator", "run", "-speed", "300", "-scenario", "scenario.yaml", "--"]
    process = subprocess.run(
        [*command, "sh", "-ec", A_RUN_THAT_ENDS],
        cwd=home,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.search(r"ends in  (1h \d+m|\d+m \d+s)", (home / "serving").read_text()), (home / "serving").read_text()
    assert "nothing runs there" in (home / "ended").read_text()
