"""What a command does not import. How long it takes is measured by tests/bench/startup.py."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tpudeploy.emulator import running

PROFILE = "gemma4-e2b-v6e1.yaml"
GOOGLE = ("google", "googleapiclient", "httplib2", "requests")
TYPED_CLIENT = "google.cloud.tpu_v2"
HEAVY = ("mcp", "anyio", "uvloop", *GOOGLE)
# Run a command; tell what was imported when it ended.
AT_END = "import json, sys\nmain(sys.argv[1:])\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
# The same, when the first connection is about to be made.
AT_CONNECT = """
import json, os, socket, sys
def connect(self, address):
    sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))
    sys.stderr.flush()
    os._exit(0)
socket.socket.connect = connect
main(sys.argv[1:])
"""


def imported(*arguments: str, cwd: Path, code: str = AT_END, environment: dict[str, str] | None = None) -> set[str]:
    process = subprocess.run(
        [sys.executable, "-c", f"from tpudeploy.cli.main import main\n{code}", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    modules: Sequence[str] = json.loads(process.stderr.splitlines()[-1])
    return set(modules)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parents[2] / "profiles" / PROFILE, tmp_path)
    return tmp_path


def test_the_table_of_commands_imports_no_operation(work: Path) -> None:
    modules = imported("--help", cwd=work)
    assert modules.isdisjoint({*HEAVY, "pydantic", "yaml", "tpudeploy.workspace", "tpudeploy.loading"})


@pytest.mark.parametrize(
    "arguments",
    [
        ("version",),
        ("plan", "--help"),
        ("emulator", "--help"),
        ("zones", "--help"),
        ("ci", "--help"),
        ("bench", "--help"),
        ("mcp", "--help"),
        ("validate", PROFILE),
    ],
)
def test_what_calls_no_cloud_imports_none_of_its_clients(work: Path, arguments: tuple[str, ...]) -> None:
    assert imported(*arguments, cwd=work).isdisjoint({*HEAVY, "tpudeploy.emulator"})


def test_validate_imports_no_feature(work: Path) -> None:
    assert not {name for name in imported("validate", PROFILE, cwd=work) if name.startswith("tpudeploy.features.")}


@pytest.mark.parametrize("command", [("plan",), ("apply", "-auto-approve", "--wait", "accepted")])
def test_a_state_in_a_folder_needs_no_cloud_storage(work: Path, command: tuple[str, ...]) -> None:
    with running(scenario={"nodes": "simulated"}) as emulator:
        local = imported(*command, PROFILE, cwd=work, environment=emulator.environment)
        remote = imported(*command, PROFILE, "--backend", "gs://states", cwd=work, environment=emulator.environment)
    assert not {name for name in local if name.startswith("google.cloud.storage")}
    assert "google.cloud.storage" in remote
    assert TYPED_CLIENT not in local | remote, "it is for zones, doctor, gc and import alone"
    assert "grpc" not in local


def test_a_refused_request_imports_no_client_of_another_service(work: Path) -> None:
    """Those of Cloud Storage and of the typed API take 0.12 s of CPU, and refusals are what a hunt consists of."""
    scenario = {
        "nodes": "simulated",
        "trouble": [{"fault": "quota-exhausted", "method": "queuedResources.create", "times": 1}],
    }
    with running(scenario=scenario) as emulator:
        apply = ("apply", PROFILE, "-auto-approve", "--wait", "accepted")
        modules = imported(*apply, cwd=work, environment=emulator.environment)
        assert len([each for each in emulator.requests if each.method == "POST"]) == 2
    assert modules.isdisjoint({"requests", "grpc", "google.api_core.exceptions", "google.protobuf"})


@pytest.mark.parametrize(
    "command",
    [("zones",), ("doctor", PROFILE), ("gc",), ("import", "gemma4-e2b[0]", "x", PROFILE)],
    ids=lambda command: command[0],
)
def test_what_reads_the_general_api_imports_the_typed_client(work: Path, command: tuple[str, ...]) -> None:
    with running(scenario={"nodes": "simulated"}) as emulator:
        assert TYPED_CLIENT in imported(*command, cwd=work, environment=emulator.environment)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [(("schema",), 0, "}\n"), (("validate", PROFILE), 0, ": valid\n"), (("validate", "absent.yaml"), 1, "")],
)
def test_a_process_ends_at_once_with_its_code_and_all_it_said(
    work: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    tpudeploy = Path(sys.executable).with_name("tpudeploy")
    ended = subprocess.run([tpudeploy, *arguments], cwd=work, capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert ended.stdout.endswith(message)
    assert code == 0 or ended.stderr.startswith("Error")


def test_plan_reaches_the_network_before_the_typed_client_is_imported(work: Path) -> None:
    with running(scenario={"nodes": "simulated"}) as emulator:
        apply = [str(Path(sys.executable).with_name("tpudeploy")), "apply", PROFILE, "-auto-approve"]
        subprocess.run(
            [*apply, "--wait", "accepted"], cwd=work, env=emulator.environment, capture_output=True, check=True
        )
    modules = imported("plan", PROFILE, cwd=work, code=AT_CONNECT, environment={"TPU_EMULATOR_HOST": "127.0.0.1:9"})
    assert "googleapiclient.discovery" in modules
    assert modules.isdisjoint({TYPED_CLIENT, "google.api_core.exceptions", "requests", "grpc"})
