"""The floors would be noticed: each contract catches the violation it was written against."""

from __future__ import annotations

import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
GROUND = "What decides never touches the world"
# What is planted where, and which contract must name it.
VIOLATIONS = [
    ("adapters/files.py", "import tpudeploy.engine.plan", "Each floor imports only the floors below it"),
    ("domain/names.py", "import tpudeploy.reconcile.decide", "Each floor imports only the floors below it"),
    ("reconcile/decide.py", "import time", GROUND),
    ("text/words.py", "import logging", GROUND),
    ("cli/context.py", "import tpudeploy.features.benchmark.cells", "Each floor imports only the floors below it"),
    (
        "features/benchmark/view.py",
        "import tpudeploy.features.ab_test.view",
        "A feature imports only what its row says that it needs",
    ),
    (
        "features/gitops/markdown.py",
        "import tpudeploy.features.rehearsal.view",
        "A feature imports only what its row says that it needs",
    ),
    ("features/ab_test/arms.py", "import time", GROUND),
    (
        "availability/gates.py",
        "import tpudeploy.boot_log.view",
        "What users need around an apply does not know each other",
    ),
    ("engine/plan.py", "import tpudeploy.availability.gates", "The deployer surveys nothing"),
    ("domain/plan.py", "import pydantic", "The ground floor is the standard library alone"),
    ("emulator/nodes.py", "import tpudeploy.reconcile.decide", "The emulator knows the catalogue, not us"),
    ("workspace.py", "import tpudeploy.emulator.clock", "One command imports the emulator"),
    ("engine/plan.py", "import google.auth", "Google's libraries come in by one door"),
    ("workspace.py", "import mcp", "Agents come in by one door"),
    (
        "adapters/http_probe.py",
        "import tenacity",
        "Retrying lives in three files: the look, the conditional, the forge",
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("floors")
    shutil.copytree(ROOT / "tpudeploy", folder / "tpudeploy", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def lint(folder: Path) -> tuple[int, str]:
    linted = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return linted.returncode, linted.stdout + linted.stderr


@pytest.mark.parametrize(("file", "line", "contract"), VIOLATIONS)
def test_a_planted_violation_is_named(copy: Path, file: str, line: str, contract: str) -> None:
    planted = copy / "tpudeploy" / file
    before = planted.read_text(encoding="utf-8")
    planted.write_text(f"{before}\n{line}\n", encoding="utf-8")
    code, answer = lint(copy)
    planted.write_text(before, encoding="utf-8")
    module = file.removesuffix(".py").replace("/", ".")
    assert code != 0, answer
    assert f"{contract} BROKEN" in answer
    assert f"tpudeploy.{module}" in answer


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = grimp.build_graph("tpudeploy", exclude_type_checking_imports=True)
    imports = {module: modules.find_modules_directly_imported_by(module) for module in modules.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle


def test_a_module_outside_every_floor_is_named(copy: Path) -> None:
    planted = copy / "tpudeploy" / "elsewhere.py"
    planted.touch()
    code, answer = lint(copy)
    planted.unlink()
    assert code != 0, answer
    assert "elsewhere" in answer
