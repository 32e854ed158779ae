"""Who keeps a deployment without a laptop: each text is what its own program accepts, and grants no more than it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_line import command

import tpudeploy as td
from tpudeploy.cli.main import parse, two_dashes
from tpudeploy.version import VERSION

GOLDEN = Path(__file__).parent / "data"
PROFILE = """\
version: 1
name: gemma
model: {id: google/gemma-4-E2B-it}
tpu: {type: v6e-1}
serving: {image: "vllm/vllm-tpu:v0.32.0"}
placement:
  project: my-project
  zones: [us-east5-a]
  service_account: serve@my-project.iam.gserviceaccount.com
lifecycle: {hours: "Mon-Fri 08:00-19:00 Europe/Berlin"}
"""
BUCKET = "gs://my-states/team"


def _rendered(folder: Path, what: str, backend: str | None = BUCKET) -> str:
    (folder / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    with td.Workspace(folder, backend=backend) as workspace:
        return workspace.render(folder / "gemma.yaml", what).text.replace(str(folder), "/FOLDER")


@pytest.mark.parametrize("what", ["watch-systemd", "watch-cloud-run", "watch-github", "role"])
def test_the_text_is_that_of_the_golden_file(tmp_path: Path, what: str) -> None:
    text, path = _rendered(tmp_path, what) + "\n", GOLDEN / f"{what}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text.replace(VERSION, "RELEASE") == path.read_text("utf-8").replace(VERSION, "RELEASE")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (Debian: systemd)")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "tpudeploy-gemma.service"
    # The program is not on this computer.
    text = _rendered(tmp_path, "watch-systemd").replace("/opt/tpudeploy/bin/tpudeploy", "/bin/true")
    unit.write_text(text, encoding="utf-8")
    process = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert "tpudeploy-gemma.service" not in process.stderr, process.stderr


def test_actionlint_finds_nothing_wrong_with_the_workflow(tmp_path: Path) -> None:
    path = tmp_path / "workflow.yml"
    path.write_text(_rendered(tmp_path, "watch-github"), encoding="utf-8")
    for program, arguments in (("actionlint", ()), ("zizmor", ("--offline", "--quiet"))):
        command = [str(Path(sys.executable).with_name(program)), *arguments, str(path)]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert process.returncode == 0, process.stdout + process.stderr


def test_the_commands_that_they_run_are_ours(tmp_path: Path) -> None:
    workflow = yaml.safe_load(_rendered(tmp_path, "watch-github"))
    job = yaml.safe_load(_rendered(tmp_path, "watch-cloud-run"))
    container = job["spec"]["template"]["spec"]["template"]["spec"]["containers"][0]
    unit = _rendered(tmp_path, "watch-systemd")
    start = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    commands = (workflow["jobs"]["apply"]["steps"][-1]["run"].split()[1:], container["args"], start.split()[1:])
    for words in commands:
        parse(two_dashes(words))
        assert words[0] == "apply"


@pytest.mark.parametrize("what", ["watch-cloud-run", "watch-github"])
def test_a_state_in_a_folder_cannot_be_kept_from_elsewhere(tmp_path: Path, what: str) -> None:
    with pytest.raises(td.errors.ConfigError, match="no job elsewhere can read"):
        _rendered(tmp_path, what, backend=None)


def test_the_role_has_the_one_permission_of_each_api(tmp_path: Path) -> None:
    role = yaml.safe_load(_rendered(tmp_path, "role"))
    assert set(role["includedPermissions"]) <= {"tpu.nodes.delete", "compute.instances.delete"}
    assert role["includedPermissions"]


def test_a_role_that_no_machine_needs_is_not_rendered(tmp_path: Path) -> None:
    (tmp_path / "gemma.yaml").write_text(PROFILE.partition("lifecycle:")[0], encoding="utf-8")
    with td.Workspace(tmp_path) as workspace, pytest.raises(td.errors.ConfigError, match="none needs a role"):
        workspace.render(tmp_path / "gemma.yaml", "role")


def test_the_command_line_names_where_the_states_are(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The hint of a refused folder works as it is written."""
    (tmp_path / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    refused = command(tmp_path, capfd, "render", "gemma.yaml", "watch-cloud-run")
    assert (refused.code, "then render with --backend gs://BUCKET" in refused.err) == (1, True)
    text = command(tmp_path, capfd, "render", "gemma.yaml", "watch-cloud-run", "--backend", BUCKET).out
    assert yaml.safe_load(text)["kind"] == "Job"


@pytest.mark.parametrize("place", [".tpudeploy", "states"])
def test_a_unit_may_write_where_its_states_are(tmp_path: Path, place: str) -> None:
    unit = _rendered(tmp_path, "watch-systemd", backend=None if place == ".tpudeploy" else str(tmp_path / place))
    writable = next(line for line in unit.splitlines() if line.startswith("ReadWritePaths="))
    assert (place in writable) == ("TPUDEPLOY_BACKEND" in unit) == (place == "states")
    assert ("the profile and its .tpudeploy" in unit) == (place == ".tpudeploy")
