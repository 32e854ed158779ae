"""Every example, as its header says to run it, on an emulator of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from real_time import DEADLINE

from tpudeploy.adapters.local_routers import find_program

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir())
RUNNABLE = {
    "01-command-line": "run.sh",
    "02-library": "pipeline.py",
    "03-own-zones": "run.sh",
    "04-failure-drill": "run.sh",
    "05-pull-requests": "run.sh",
    "06-agent": "session.py",
    "07-replicas": "drill.py",
    "08-budget": "run.sh",
    "09-campaign": "run.sh",
}


def run(*argv: str, speed: int = 1, one_slice: bool = True) -> subprocess.CompletedProcess[str]:
    """As a person would: real processes, the tools of this environment first on PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TPU", "GOOGLE_CLOUD"))}
    environment |= {"PATH": path, "TPUDEPLOY_SPEED": str(speed)}
    if one_slice:
        environment["TPUDEPLOY_SCENARIO"] = str(ROOT / "tests" / "one_slice.yaml")
    return subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False
    )


def header_command(script: Path) -> list[str]:
    """The line of the header that starts the example."""
    lines = (line.strip("# \n") for line in script.read_text(encoding="utf-8").splitlines())
    return shlex.split(next(line for line in lines if line.startswith("tpudeploy emulator run")))


def test_no_example_is_left_out() -> None:
    assert sorted(RUNNABLE) == EXAMPLES


@pytest.mark.parametrize(
    "name",
    [
        "02-library",
        "03-own-zones",
        pytest.param("04-failure-drill", marks=pytest.mark.long),
        pytest.param("05-pull-requests", marks=pytest.mark.long),
        pytest.param("06-agent", marks=pytest.mark.long),
        pytest.param("08-budget", marks=pytest.mark.long),
        pytest.param("09-campaign", marks=pytest.mark.long),
        pytest.param(
            "07-replicas",
            marks=[
                pytest.mark.long,
                pytest.mark.skipif(find_program("haproxy") is None, reason="haproxy: apt-get install haproxy"),
            ],
        ),
    ],
)
def test_an_example_runs_as_its_header_says(name: str) -> None:
    result = run(*header_command(ROOT / "examples" / name / RUNNABLE[name]), speed=4, one_slice=name == "02-library")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.long
def test_the_failure_drill_runs_on_instances_too() -> None:
    drill = ROOT / "examples" / "04-failure-drill" / "run.sh"
    result = run(*header_command(drill), "--set", "placement.backend=gce-instance", speed=4)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "spot, gce-instance" in result.stderr


def test_the_demo_shows_every_step_and_leaves_nothing_running() -> None:
    result = run("examples/demo.sh")
    answer = result.stdout + result.stderr
    assert result.returncode == 0, answer
    assert "Serving at http://" in result.stderr
    assert "This is the tpudeploy emulator" in result.stdout
    assert "completion tokens" in result.stderr
    assert "On the emulator: no chip is allocated" in result.stdout
    assert "gemma[0]  not deployed" in result.stdout
    assert result.stdout.endswith("Every step worked. Nothing is left running.\n")
    _readme_shows(result.stderr + result.stdout)


# The lines of the demo that README shows, in this order: the first one of each kind.
SHOWN = (
    r"^\$ tpudeploy apply",
    r"^  # gemma\[0\] will be created",
    r"^ +# about .* once granted",
    r"^ +# up to 2 slices",
    r"model\.id",
    r"tpu\.type",
    r"placement\.max_run_duration",
    r"^Plan: 1 to add",
    r"Requesting v6e-1 in us-east5-a",
    r"Requesting v6e-1 in us-east5-b",
    r"Refused in us-east5-b",
    r"Provisioning in us-east5-a",
    r"Starting the container",
    r"Compiling \d+ of",
    r"Healthy",
    r"^Done! Resources: 1 added",
    r"^gemma\[0\] endpoint",
    r"^\$ tpudeploy query",
    r"^TTFT",
    r"^This is the tpudeploy emulator",
    r"^\$ tpudeploy destroy",
    r"^Done! .* 1 destroyed",
    r"^Every step worked",
)
_TRANSCRIPT = re.compile(r"(?<=^```console\n)\$ make demo\n.*?(?=^```$)", re.MULTILINE | re.DOTALL)
_PASSING = re.compile(r"gemma-[0-9a-f]{8}-|[\d.]+(?:m \d+)?")


def _readme_shows(output: str) -> None:
    """README shows these lines of the demo as they are printed, but for its figures. UPDATE_GOLDEN=1 rewrites it."""
    lines = [next(line for line in output.splitlines() if re.search(pattern, line)) for pattern in SHOWN]
    transcript = "\n".join(["$ make demo", *lines, ""])
    text = README.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(_TRANSCRIPT.sub(lambda _: transcript, text), encoding="utf-8")
        return
    shown = _TRANSCRIPT.search(text)
    assert shown is not None
    assert _PASSING.sub("0", shown.group()) == _PASSING.sub("0", transcript)


@pytest.mark.parametrize("step", ["query", "status", "destroy"])
def test_the_demo_fails_where_a_step_does(step: str, tmp_path: Path) -> None:
    """A `tpudeploy` that answers everything with success and silence, but for one step."""
    pretender = tmp_path / "tpudeploy"
    pretender.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        '  emulator) while [ "$1" != -- ]; do shift; done; shift; TPU_EMULATOR_HOST=nowhere exec "$@";;\n'
        f"  {step}) exit 1;;\n"
        "  query) echo an answer;;\n"
        '  status) test -e destroyed && echo "not deployed" || echo serving;;\n'
        "  destroy) touch destroyed;;\n"
        "esac\n"
    )
    pretender.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    process = subprocess.run(["examples/demo.sh"], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert process.returncode != 0


def test_an_example_refuses_to_run_against_a_real_cloud() -> None:
    for script in (ROOT / "examples").glob("*/run.sh"):
        result = run(str(script))
        assert result.returncode != 0
        assert "emulator run" in result.stderr or "how to run it" in result.stderr
