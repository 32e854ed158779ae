"""Print the size and the shape of the package: `python tests/house/measures.py [-list] [FOLDER]`.

docs/maintainers/measurements.md has the figures. FOLDER is another tree's package, to compare with. With -list, the places that a figure
counts follow it. The command fails if a function is too complex, or if a conditional expression has another one in it:
`make lint` runs it. `tests/house/words.py` measures names and sentences.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "tpudeploy"
SMALL = 50  # lines
COMPLEX = 15  # branches of a function, those of comprehensions and conditional expressions included
_BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.match_case)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def kinds_of_lines(text: str, tree: ast.Module) -> Counter[str]:
    """Return how many lines are blank, comments, docstrings, imports, tables and constants of modules, other code."""
    kinds = ["blank" if not line.strip() else "comments" if line.strip()[0] == "#" else "code" for line in lines(text)]

    def mark(node: ast.AST, kind: str, *, only_code: bool = False) -> None:
        for number in range(node.lineno - 1, node.end_lineno):  # type: ignore[attr-defined]  # statements have both
            if not only_code or kinds[number] == "code":
                kinds[number] = kind

    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            mark(node.body[0], "docstrings")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            mark(node, "imports")
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            mark(node, "tables", only_code=True)
    return Counter(kinds)


def lines(text: str) -> list[str]:
    """Return the lines of a file."""
    return text.split("\n")[:-1]


def branches(function: ast.AST) -> int:
    """Return the complexity of a function."""
    count = 1
    for node in ast.walk(function):
        count += isinstance(node, _BRANCHES)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return count


def importers(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that import each module of the package, where there are any."""
    importers_of_each: dict[str, set[str]] = {}
    for name, tree in trees.items():
        for target in _targets(tree, trees):
            importers_of_each.setdefault(target, set()).add(name)
    return importers_of_each


def _targets(tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                target = inside if inside in modules else node.module
                if target in modules:
                    yield target


def complex_functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line of each function that is too complex, and its name with its complexity."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and branches(node) > COMPLEX:
            yield node.lineno, f"{node.name} ({branches(node)})"


def nested_conditionals(tree: ast.Module) -> Iterator[int]:
    """Yield the line of each conditional expression that has another one in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and sum(isinstance(each, ast.IfExp) for each in ast.walk(node)) > 1:
            yield node.lineno


def main(package: Path, *, with_places: bool) -> int:
    """Print each measure, and with `with_places` the places that it counts. Return 1 if one that must be 0 is not."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    sizes = {path: len(lines(text)) for path, text in texts.items()}
    total, kinds = sum(sizes.values()), Counter[str]()
    for path, text in texts.items():
        kinds += kinds_of_lines(text, trees[path])
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    comprehensions = sum(
        isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) for node in nodes
    )
    conditionals = sum(isinstance(node, ast.IfExp) for node in nodes)
    modules = {".".join(path.relative_to(package.parent).with_suffix("").parts): tree for path, tree in trees.items()}
    importers_of_each = importers({name.removesuffix(".__init__"): tree for name, tree in modules.items()})
    small = {path: size for path, size in sizes.items() if size < SMALL}

    def show(figure: str, places: Iterable[str] = (), *, is_listed: bool = with_places) -> None:
        print(figure)
        for place in places if is_listed else ():
            print(f"  {place}")

    show(f"{total:,} lines in {len(texts)} files: {', '.join(f'{n:,} {kind}' for kind, n in kinds.most_common())}")
    parts = Counter[str]()
    for path, size in sizes.items():
        folder = path.relative_to(package).parts[0]
        parts[folder if folder in {"features", "emulator"} else "kernel"] += size
    show(", ".join(f"{name} {size:,} lines" for name, size in parts.most_common()))
    show(
        f"{len(small)} files under {SMALL} lines, {sum(size == 1 for size in small.values())} of them a package's docstring",
        (f"{path.relative_to(package)} ({size})" for path, size in small.items() if size > 1),
    )
    single = {name: next(iter(each)) for name, each in sorted(importers_of_each.items()) if len(each) == 1}
    show(f"{len(single)} modules with one importer", (f"{name} in {importer}" for name, importer in single.items()))
    functions = [
        f"{path.relative_to(package)}:{line} {name}"
        for path, tree in trees.items()
        for line, name in complex_functions(tree)
    ]
    show(f"{len(functions)} functions with a complexity above {COMPLEX}", functions, is_listed=True)
    show(f"{1000 * comprehensions / total:.1f} comprehensions in 1,000 lines")
    nested = [
        f"{path.relative_to(package)}:{line}" for path, tree in trees.items() for line in nested_conditionals(tree)
    ]
    figure = f"{1000 * conditionals / total:.1f} conditional expressions in 1,000 lines"
    show(f"{figure}; {len(nested)} with another one in them", nested, is_listed=True)
    return 1 if functions or nested else 0


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "-list"]
    sys.exit(main(Path(arguments[0]) if arguments else PACKAGE, with_places="-list" in sys.argv))
