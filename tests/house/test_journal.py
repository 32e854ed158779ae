"""A failed test prints what repeats and explains it: its seeds, and the journal of each emulator that it started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAILING = """
from urllib.request import urlopen

import pytest

from tpudeploy.emulator import VirtualClock, running


@pytest.fixture(scope="module")
def world():
    with running(clock=VirtualClock(), scenario={"seed": 7}) as emulator:
        yield emulator


def test_that_passes(world):
    with running(clock=VirtualClock()) as emulator, urlopen(f"http://{emulator.host}/?passed"):
        pass


def test_that_fails(world):
    with urlopen(f"http://{world.host}/?twice"), urlopen(f"http://{world.host}/?twice"):
        pass
    with urlopen(f"http://{world.host}/?wide"), running(clock=VirtualClock(), scenario={"seed": 8}) as emulator:
        with urlopen(f"http://{emulator.host}/?narrow"):
            raise ValueError("not my day")
"""


def test_a_failed_test_prints_its_seeds_and_the_requests_to_its_emulators(tmp_path: Path) -> None:
    file = tmp_path / "test_failing.py"
    file.write_text(FAILING, encoding="utf-8")
    options = [
        "--hypothesis-seed=5",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "randomly",
    ]
    options += ["--randomly-seed=1", "--randomly-dont-reorganize", "--basetemp", str(tmp_path / "scratch")]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(file)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "--randomly-seed=1\n--hypothesis-seed=5\n" in run.stdout
    assert "with seed 7," in run.stdout
    assert "GET /?twice 200 (2 times)\nGET /?wide 200\n" in run.stdout
    assert "with seed 8," in run.stdout
    assert "GET /?narrow 200" in run.stdout
    assert "?passed" not in run.stdout
