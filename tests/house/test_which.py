"""`make which` names the tests that run a function of a file, and none that only imports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from real_time import DEADLINE

WHICH = Path(__file__).with_name("which.py")
TESTS = """
from product import half

def test_that_imports_it(): pass
def test_that_calls_it(): assert half(4) == 2
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE)


def test_the_tests_that_run_a_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.coverage.run]\ndata_file = "data"\nsource = ["."]\n')
    (tmp_path / "product.py").write_text("def half(number):\n    return number // 2\n")
    (tmp_path / "test_product.py").write_text(TESTS)
    before = run(tmp_path, str(WHICH), "product.py")
    assert (before.returncode, "make coverage" in before.stderr) == (1, True)
    tested = run(tmp_path, "-m", "pytest", "--cov", "--cov-context=test", "--cov-report=", ".")
    assert tested.returncode == 0, tested.stdout
    assert run(tmp_path, str(WHICH), "product.py").stdout == "    1 lines  test_product.py::test_that_calls_it\n"
    assert "is no file" in run(tmp_path, str(WHICH), "absent.py").stderr
