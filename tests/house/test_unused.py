"""Whatever a module of the package defines is used: a row's function that its table doesn't name is found here.

A use is a name in the module itself, an import of the name, or an attribute of the module. So a rule, check, alert,
examination or family that was written and never added to its table has no use, and neither has a row's code whose rule
is gone.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import tpudeploy

PACKAGE = Path(tpudeploy.__file__).parent

# The modules that a table finds by their names, and the names by which it reads what is in them.
FOUND_BY_NAME: Mapping[str, frozenset[str]] = {
    r"tpudeploy\.cli\.commands\..+": frozenset({"arguments", "run", "verb_arguments", "VERBS", "NEEDS_VERB"}),
    r"tpudeploy\.features\..+command": frozenset({"arguments", "run", "verb_arguments", "VERBS", "NEEDS_VERB"}),
    r"tpudeploy\.(operations\..+|features\..+operation)": frozenset({"OPERATION", "OPERATIONS"}),
    r"tpudeploy\.features\..+\.tools": frozenset({"ANSWERS", "RESOURCES", "RESPONSES", "ROWS", "WRITING"}),
    r"tpudeploy\.features\..+\.documents": frozenset({"DOCUMENTS"}),
    r"tpudeploy\.features\..+\.companion": frozenset({"companion"}),
    r"tpudeploy\.features\..+\.renderers": frozenset({"RENDERERS", "JSON_TEXTS"}),
    r"tpudeploy\.emulator\.machine\.(ray|real_engine|vllm\.main)": frozenset({"run"}),
    r"tpudeploy\.cli\.options": frozenset({"events"}),  # a row of an operation names it
    r"tpudeploy\.(orphans|planning)\..+|tpudeploy\.pins": frozenset({"EXPLANATIONS"}),
}
# What no module of the package uses, with the reason.
UNUSED: Mapping[str, str] = {
    "tpudeploy.domain.errors.Unheard": "a public name of earlier versions",
    "tpudeploy.emulator.timings.CLOUD": "the times of a slow cloud, for scenarios of tests",
    "tpudeploy.features.rehearsal.view.page": "docs/not-verified.md, which a test writes",
    "tpudeploy.catalog._engine_models.DIGEST": "a test compares the table's text with it",
}


class Definition(NamedTuple):
    """A function, class or constant of a module."""

    module: str
    name: str


class Names(ast.NodeVisitor):
    """The definitions of a module, and what it uses of itself and of others."""

    def __init__(self, module: str, modules: frozenset[str]) -> None:
        self.module = module
        self.modules = modules
        self.definitions: set[Definition] = set()
        self.uses: set[Definition] = set()
        self._aliases: dict[str, str] = {}  # the modules of this package by their names here
        self._inside: list[str] = []

    def read(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tpudeploy"):
                self._import(node)
        for statement in tree.body:
            self.definitions |= {Definition(self.module, name) for name in defined(statement)}
            self._inside = list(defined(statement))
            self.visit(statement)

    def _import(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            if path in self.modules:
                self._aliases[alias.asname or alias.name] = path
            self.uses.add(Definition(str(node.module), alias.name))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self._inside:
            self.uses.add(Definition(self.module, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in self._aliases:
            self.uses.add(Definition(self._aliases[node.value.id], node.attr))
        self.generic_visit(node)


def defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def unused(package: Path) -> set[str]:
    """Return `module.name` of what nothing uses."""
    trees = {module_name(file, package): ast.parse(file.read_text(encoding="utf-8")) for file in package.rglob("*.py")}
    modules = frozenset(trees)
    definitions: set[Definition] = set()
    uses: set[Definition] = set()
    for module, tree in trees.items():
        names = Names(module, modules)
        names.read(tree)
        definitions |= names.definitions
        uses |= names.uses
    return {f"{each.module}.{each.name}" for each in definitions - uses if not each.name.startswith("__")}


def module_name(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def is_found_by_name(path: str) -> bool:
    module, _, name = path.rpartition(".")
    return any(name in names and re.fullmatch(form, module) for form, names in FOUND_BY_NAME.items())


def test_nothing_is_defined_that_is_not_used() -> None:
    assert {path for path in unused(PACKAGE) if not is_found_by_name(path)} == set(UNUSED)


RULE = """

def my_new_row(*_: object):
    yield
"""


@pytest.mark.parametrize(
    "file",
    [
        "config/rules/placement.py",
        "sizing/checks/memory.py",
        "availability/doctor/network.py",
        "features/alerts/rules.py",
        "features/alerts/panels.py",
        "features/benchmark/foreign.py",
        "boot_log/signatures/hbm.py",
        "adapters/google/refusals/quota.py",
        "catalog/families/qwen.py",
        "node/router_configuration.py",
        "features/agents/tools.py",
        "domain/events.py",
    ],
)
def test_a_row_that_its_table_does_not_name_is_found(file: str, tmp_path: Path) -> None:
    package = tmp_path / "tpudeploy"
    (package / file).parent.mkdir(parents=True)
    shutil.copy(PACKAGE / file, package / file)
    with (package / file).open("a", encoding="utf-8") as text:
        text.write(RULE)
    assert f"{module_name(package / file, package)}.my_new_row" in unused(package)
