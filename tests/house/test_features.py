"""A feature can be put down: its row is whole, it imports what the row names, and the rest works without its folder."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tpudeploy.feature_table import COMMANDS, FEATURES, Feature, forms, modules
from tpudeploy.operations import operation

PACKAGE = Path(__file__).parents[2] / "tpudeploy"
FOLDER = PACKAGE / "features"
_IGNORED = {".git", ".venv", "__pycache__", "build", "mutants"}
PROFILE = PACKAGE.parent / "profiles" / "gemma4-e2b-v6e1.yaml"
# Whatever imports all of the deployer and asks it for everything that it has a table of.
USE_EVERYTHING = """
import sys
from importlib import import_module
from pathlib import Path
import tpudeploy
from tpudeploy.cli.commands import COMMANDS
from tpudeploy.cli.main import main
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.operations.schemas import all_schemas

root = Path(tpudeploy.__file__).parent
for path in sorted(root.rglob("*.py")):
    parts = path.relative_to(root).with_suffix("").parts
    if parts[0] not in ("features", "emulator", "__main__"):
        import_module(".".join(("tpudeploy", *parts)).removesuffix(".__init__"))
for name in OPERATIONS:
    assert operation(name).run.__doc__
for schema in all_schemas().values():
    assert schema()
for name in COMMANDS:
    assert main([name, "--help"]) == 0, name
for name in tpudeploy.__all__:
    getattr(tpudeploy, name)
for line in (["validate"], ["size"], ["render", "request"], ["render", "startup-script"]):
    assert main([line[0], sys.argv[1], *line[1:]]) == 0, line
"""


def test_every_folder_of_a_feature_has_a_row_and_every_row_a_folder() -> None:
    folders = {init.parent.name for init in FOLDER.glob("*/__init__.py")}
    assert folders == set(FEATURES)


@pytest.mark.parametrize("name", FEATURES)
def test_every_module_that_a_row_names_is_there_with_what_it_is_named_for(name: str) -> None:
    row = FEATURES[name]
    home = f"tpudeploy.features.{name}"
    for title, module in row.results.items():
        assert hasattr(import_module(f"{home}.{module}"), title)
    for title in row.operations:
        assert operation(title).run.__module__.startswith(home)
    for title, command in row.commands.items():
        assert not command.module or hasattr(import_module(COMMANDS[title].module), "run")
    for title in row.forms:
        assert {"arguments", "run"} <= set.union(*({*vars(form)} for form in forms(title)))
    for title, module in row.renders.items():
        assert title in import_module(f"{home}.{module}").RENDERERS
    assert all(module.DOCUMENTS for module in modules("documents"))
    assert all(module.companion for module in modules("companion"))


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_imports_the_features_that_its_row_names(name: str) -> None:
    assert _imported(name) == set(FEATURES[name].needs)


def _imported(name: str) -> set[str]:
    """Return the features that the modules of one import. A module of agents' tools is read by `agents` alone."""
    found = set()
    for path in (FOLDER / name).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tpudeploy.features."):
                found.add((node.module or "").split(".")[2])
    return found - {name} - ({"agents"} if FEATURES[name].tools else set())


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("put-down")
    shutil.copytree(PACKAGE, folder / "tpudeploy", ignore=shutil.ignore_patterns("__pycache__"))
    for data in ("templates", "profiles"):
        shutil.copytree(PACKAGE.parent / data, folder / data)
    return folder


@pytest.mark.parametrize("name", [*FEATURES, "emulator"])
def test_without_its_folder_everything_else_works(copy: Path, tmp_path: Path, name: str) -> None:
    home = copy / "tpudeploy" / (name if name == "emulator" else f"features/{name}")
    shutil.move(home, tmp_path / "aside")
    try:
        used = subprocess.run(
            [sys.executable, "-c", USE_EVERYTHING, PROFILE],
            cwd=copy,
            env={"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    finally:
        shutil.move(tmp_path / "aside", home)
    assert used.returncode == 0, used.stdout[-1000:] + used.stderr
    for absent in _without(name):
        assert f"usage: tpudeploy {absent} " not in used.stdout


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FEATURES)
def test_without_its_folder_the_kernels_quick_tests_pass(tmp_path: Path, name: str) -> None:
    """They run from a copy of this folder, in which those who need the feature are missing too."""
    root, copy = PACKAGE.parent, tmp_path / "kernel"
    shutil.copytree(root, copy, ignore=_ignore)
    for title, row in FEATURES.items():
        if name in (title, *row.needs):
            shutil.rmtree(copy / "tpudeploy" / "features" / title)
    assert shutil.which("make"), "make is needed: its rule says what the quick tests are"
    run = subprocess.run(
        ["make", "--old-file", ".venv/installed-dev", "quick"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]


def _ignore(_folder: str, names: list[str]) -> set[str]:
    """Return what a copy does not need: the environment, the history, caches and what was built."""
    return {name for name in names if name in _IGNORED or (name.startswith(".") and name.endswith("_cache"))}


def _without(name: str) -> set[str]:
    """Return the commands that leave with a feature: its own, and those of the features that need it."""
    gone: list[Feature] = [row for title, row in FEATURES.items() if name in (title, *row.needs)]
    return {command for row in gone for command in row.commands}
