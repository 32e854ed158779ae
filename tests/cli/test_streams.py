"""Standard streams that are closed, full, or left by their reader: told where there is somebody, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROFILE

# Without bytecode: a limit on the size of files would tear what everybody imports later.
TPUDEPLOY = f'"{sys.executable}" -B -m tpudeploy'


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One line of bash, in which `tpudeploy` is ours."""
    (folder / "gemma.yaml").write_text(PROFILE, encoding="utf-8")
    text = f'set -o pipefail; tpudeploy() {{ {TPUDEPLOY} "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["schema", "validate gemma.yaml", "render gemma.yaml docker", "init -from list"])
def test_a_full_disk_is_an_error_and_no_bug_of_ours(tmp_path: Path, command: str) -> None:
    result = run(f"tpudeploy {command} >/dev/full", tmp_path)
    assert result.returncode == 1
    assert "The output cannot be written: No space left on device." in result.stderr
    assert "bug" not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["--help", "plan --help", "schema", "explain TPU1201"])
def test_a_reader_that_left_hears_no_complaint(tmp_path: Path, command: str) -> None:
    result = run(f"tpudeploy {command} | true", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_nobody_listening(tmp_path: Path, closed: str) -> None:
    result = run(f"tpudeploy validate gemma.yaml {closed}", tmp_path)
    assert result.returncode == 0
    assert result.stdout == ("" if ">&- " in f"{closed} ".replace("2>&- ", "") else "gemma.yaml: valid\n")


def test_warnings_do_not_turn_up_on_stdout_where_stderr_is_closed(tmp_path: Path) -> None:
    result = run("tpudeploy validate gemma.yaml 2>&-", tmp_path)
    assert result.stdout == "gemma.yaml: valid\n"


def test_an_approval_cannot_be_asked_for_on_a_closed_stdin(tmp_path: Path) -> None:
    result = run("GOOGLE_CLOUD_PROJECT=my-project tpudeploy apply gemma.yaml <&-", tmp_path)
    assert result.returncode == 1
    assert "Approval needs an interactive terminal." in result.stderr


@pytest.mark.parametrize("name", ["gemma4-e2b-v6e1.yaml", "profile.schema.json"])
def test_init_says_that_it_cannot_write_and_leaves_nothing_half_written(tmp_path: Path, name: str) -> None:
    result = run(f"ulimit -f {1 if name.endswith('yaml') else 16}; trap '' XFSZ; tpudeploy init", tmp_path)
    assert result.returncode == 1
    assert f"{name} cannot be written: File too large." in result.stderr
    assert not (tmp_path / name).exists()
