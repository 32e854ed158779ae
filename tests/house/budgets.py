"""Compare the size of each room with budgets.toml: `python tests/house/budgets.py [-tighten]`; `make lint` runs it.

A room is a folder of tpudeploy/, of tpudeploy/features/ or of tests/ (of tests/features/ too), the modules beside them,
or templates/. Its lines are those of `wc -l` over .py, .sh, .j2, .js and .css files, blank ones and comments included.
Imports inside functions and TYPE_CHECKING blocks are counted in tpudeploy/. The surface of an operation is an average:
the lines of operations/, cli/commands/, views/, features/agents/, and of every other module that is called operation,
command, view or tools, or ends in that, divided by the number of operations.

-tighten lowers each number to what is, and drops rooms that are gone. A number goes up by hand, with `decision = N`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tpudeploy.operations import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
FILE = "budgets.toml"
_COUNTED = {".py", ".sh", ".j2", ".js", ".css"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EXPERIMENTS = tuple(f"tpudeploy/features/{name}" for name in ("benchmark", "ab_test", "campaign", "tune", "accuracy"))
_SURFACE = tuple(f"tpudeploy/{name}/" for name in ("operations", "cli/commands", "views", "features/agents"))
_SURFACE_MODULE = re.compile(r"(^|_)(operation|command|view|tools)$")
_ENTRY = re.compile(r'"(?P<name>[^"]+)" = \{ most = (?P<most>\d+)')
Budgets = Mapping[str, Mapping[str, int]]


def room_of(path: str) -> str:
    """Return the room of a file, by its path below the root."""
    parts = path.split("/")[:-1]
    depth = 3 if parts[1:2] == ["features"] else 2
    return parts[0] if parts[0] == "templates" else "/".join(parts[:depth])


def measure(root: Path) -> tuple[dict[str, int], dict[str, Counter[str]]]:
    """Return each figure of a tree, and the modules that add to it."""
    places: dict[str, Counter[str]] = {}

    def count(figure: str, path: str, number: int) -> None:
        places.setdefault(figure, Counter())[path] += number

    for folder in ("tpudeploy", "templates", "tests"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in _COUNTED or not file.is_file():
                continue
            path, text = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
            for figure in (room_of(path), *_sums(path)):
                count(figure, path, text.count("\n"))
            if folder == "tpudeploy" and file.suffix == ".py":
                tree = ast.parse(text)
                count("imports inside functions", path, sum(map(len, _late_imports(tree))))
                count("TYPE_CHECKING blocks", path, sum(map(_is_for_type_checkers, ast.walk(tree))))
    figures = {figure: modules.total() for figure, modules in places.items()}
    figures["surface per operation"] = figures.get("surface per operation", 0) // len(OPERATIONS)
    return figures, places


def _sums(path: str) -> Iterator[str]:
    """Yield the sums that a file belongs to."""
    if path.startswith("tests/"):
        yield "tests, all"
    if not path.startswith("tpudeploy/"):
        return
    yield "product"
    yield next((part for part in ("features", "emulator") if path.startswith(f"tpudeploy/{part}/")), "kernel")
    if path.startswith(_EXPERIMENTS):
        yield "experiments"
    if path.startswith(_SURFACE) or _SURFACE_MODULE.search(Path(path).stem):
        yield "surface per operation"


def _late_imports(tree: ast.Module) -> Iterator[list[ast.AST]]:
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    inner = {
        id(each) for one in functions for each in ast.walk(one) if each is not one and isinstance(each, _FUNCTIONS)
    }
    for function in functions:
        if id(function) not in inner:
            yield [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def read(text: str) -> Budgets:
    return {name: entry for table in tomllib.loads(text).values() for name, entry in table.items()}


def violations(figures: Mapping[str, int], places: Mapping[str, Counter[str]], budgets: Budgets) -> Iterator[str]:
    """Yield each figure above its budget, or without one, with the modules that add most to it."""
    for figure, number in figures.items():
        budget = budgets.get(figure, {}).get("most")
        if budget is None or number > budget:
            most = "no budget" if budget is None else f"budget {budget:,}"
            modules = ", ".join(f"{path} ({size:,})" for path, size in places[figure].most_common(3))
            yield f"{figure}: {number:,}, {most}. Most in {modules}"


def raised(before: Budgets, after: Budgets) -> Iterator[str]:
    """Yield each number that went up without a decision of its own."""
    for name, entry in after.items():
        old = before.get(name, entry)
        if entry["most"] > old["most"] and entry.get("decision") in (None, old.get("decision")):
            yield f"{name}: raised from {old['most']:,} to {entry['most']:,} without a new decision"


def tightened(text: str, figures: Mapping[str, int]) -> str:
    """Return the file with each number lowered to what is."""
    lines = []
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None:
            lines.append(line)
        elif entry["name"] in figures:
            most = min(int(entry["most"]), figures[entry["name"]])
            lines.append(line[: entry.start("most")] + str(most) + line[entry.end("most") :])
    return "\n".join(lines) + "\n"


def _where_the_branch_began(root: Path) -> Budgets:
    """Return the budgets that this branch began with; none outside a clone, or before there were any."""
    git = ["git", "-C", str(root)]
    base = subprocess.run([*git, "merge-base", "HEAD", "origin/main"], capture_output=True, text=True, check=False)
    shown = [*git, "show", f"{base.stdout.strip()}:{FILE}"]
    file = subprocess.run(shown, capture_output=True, text=True, check=False)
    return read(file.stdout) if base.returncode == file.returncode == 0 else {}


def main(root: Path, *, tightens: bool) -> int:
    """Print what breaks a budget, or lower the budgets. Return 1 if one is broken."""
    text = (root / FILE).read_text(encoding="utf-8")
    figures, places = measure(root)
    if tightens:
        (root / FILE).write_text(tightened(text, figures), encoding="utf-8")
        return 0
    budgets = read(text)
    problems = [*violations(figures, places, budgets), *raised(_where_the_branch_began(root), budgets)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(ROOT, tightens="-tighten" in sys.argv[1:]))
