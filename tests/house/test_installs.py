"""`uv tool install .`, `pipx install .` and `pip install .` in an empty home, and the commands that are printed there.

Each fetches the dependencies, so that it needs the network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long


@pytest.mark.parametrize("tool", ["uv tool install", "pipx install", "pip install"])
def test_the_line_of_readme_installs_it_and_the_printed_command_adds_an_extra(tool: str, tmp_path: Path) -> None:
    program = tool.split(maxsplit=1)[0]
    if shutil.which(program) is None:
        pytest.skip(f"no {program} is installed: pip install {program}")
    home = tmp_path / "home"
    home.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "UV_", "PIPX_", "VIRTUAL"))
    }
    bin_folder = home / ".local" / "bin"
    if program == "pip":
        subprocess.run([sys.executable, "-m", "venv", str(home / "environment")], check=True)
        bin_folder = home / "environment" / "bin"
    environment = {**kept, "HOME": str(home), "PATH": f"{bin_folder}{os.pathsep}{kept['PATH']}"}

    def shell(line: str, *, code: int = 0) -> str:
        process = subprocess.run(
            ["bash", "-c", line], cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
        assert process.returncode == code, f"{line}\n{process.stdout}{process.stderr}"
        return process.stdout + process.stderr

    shell(f"{tool} {ROOT}")
    assert shell("command -v tpudeploy").strip() == str(bin_folder / "tpudeploy")
    assert "Next: tpudeploy plan" in shell("tpudeploy init")
    shell("tpudeploy validate gemma4-e2b-v6e1.yaml")
    assert re.search(rf"^To upgrade: git -C {ROOT} pull && .*{program}", shell("tpudeploy version"), re.MULTILINE)
    hint = re.search(r"^ *Run: (.+)$", shell("tpudeploy mcp < /dev/null", code=1), re.MULTILINE)
    assert hint is not None
    shell(hint[1])
    shell("tpudeploy mcp < /dev/null")
