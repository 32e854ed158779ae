"""promtool: Prometheus' own reader of rules, which CI installs and a person may have."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from features.alerts.promtool import Promtool


@pytest.fixture
def promtool(tmp_path: Path) -> Promtool:
    """`promtool("check", "rules", "rules.yml")` in a folder of the test's own."""
    program = os.environ.get("TPUDEPLOY_PROMTOOL") or shutil.which("promtool")
    if program is None:
        pytest.skip(
            "no promtool: `.ci/promtool .venv/bin/promtool` fetches it where there is apt; TPUDEPLOY_PROMTOOL names one"
        )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    return run
