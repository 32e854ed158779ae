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
HEAVY = ("pydantic", "yaml", "jinja2", "tenacity", *GOOGLE)
# Run a command as the console script does; tell what was imported when it ended.
AT_END = "import json, sys\ntry:\n    run()\nfinally:\n    sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
# The same, when the first connection is about to be made.
AT_CONNECT = """
import json, os, socket, sys
def connect(self, address):
    sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))
    sys.stderr.flush()
    os._exit(0)
socket.socket.connect = connect
run()
"""


def imported(*arguments: str, cwd: Path, code: str = AT_END, environment: dict[str, str] | None = None) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"from tpudeploy.cli.main import run\n{code}", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    modules: Sequence[str] = json.loads(done.stderr.splitlines()[-1])
    return set(modules)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parents[2] / "profiles" / PROFILE, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("version",), ("plan", "--help"), ("emulator", "--help"), ("zones", "--help"), ("doctor", "--help")],
)
def test_help_imports_nothing_heavy(work: Path, arguments: tuple[str, ...]) -> None:
    assert imported(*arguments, cwd=work).isdisjoint(HEAVY)


def test_validate_knows_no_cloud(work: Path) -> None:
    assert imported("validate", PROFILE, cwd=work).isdisjoint({*GOOGLE, "tenacity", "jinja2", "asyncio"})


@pytest.mark.parametrize("command", [("plan",), ("apply", "-auto-approve", "--wait", "accepted")])
def test_a_state_in_a_folder_needs_no_cloud_storage(work: Path, command: tuple[str, ...]) -> None:
    with running(scenario={"nodes": "simulated"}) as emulator:
        local = imported(*command, PROFILE, cwd=work, environment=emulator.environment)
        remote = imported(*command, PROFILE, "--backend", "gs://states", cwd=work, environment=emulator.environment)
    assert not {name for name in local if name.startswith("google.cloud.storage")}
    assert "google.cloud.storage" in remote


def test_plan_reaches_the_network_before_the_typed_client_is_imported(work: Path) -> None:
    with running(scenario={"nodes": "simulated"}) as emulator:
        apply = [str(Path(sys.executable).with_name("tpudeploy")), "apply", PROFILE, "-auto-approve"]
        subprocess.run(
            [*apply, "--wait", "accepted"], cwd=work, env=emulator.environment, capture_output=True, check=True
        )
    modules = imported("plan", PROFILE, cwd=work, code=AT_CONNECT, environment={"TPU_EMULATOR_HOST": "127.0.0.1:9"})
    assert "googleapiclient.discovery" in modules
    assert modules.isdisjoint({"google.cloud.tpu_v2", "google.api_core.exceptions", "requests", "grpc"})
