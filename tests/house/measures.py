"""Print the size and the shape of the package: `python tests/house/measures.py [FOLDER]`. CONTRIBUTING has the figures.

FOLDER is another tree's package, to compare with. `tests/house/words.py` measures names and sentences.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
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


def importers(trees: Mapping[str, ast.Module]) -> Counter[str]:
    """Return how many modules import each module of the package."""
    pairs: set[tuple[str, str]] = set()
    for name, tree in trees.items():
        pairs |= {(target, name) for target in _targets(tree, trees)}
    return Counter(target for target, _ in pairs)


def _targets(tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                target = inside if inside in modules else node.module
                if target in modules:
                    yield target


def main(package: Path) -> None:
    """Print each measure."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    sizes = {path: len(lines(text)) for path, text in texts.items()}
    total, kinds = sum(sizes.values()), Counter[str]()
    for path, text in texts.items():
        kinds += kinds_of_lines(text, trees[path])
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    complexities = [branches(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    comprehensions = sum(
        isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) for node in nodes
    )
    modules = {".".join(path.relative_to(package.parent).with_suffix("").parts): tree for path, tree in trees.items()}
    counts = importers({name.removesuffix(".__init__"): tree for name, tree in modules.items()})
    small = [path for path, size in sizes.items() if size < SMALL]
    print(f"{total:,} lines in {len(texts)} files: {', '.join(f'{n:,} {kind}' for kind, n in kinds.most_common())}")
    print(
        f"{len(small)} files under {SMALL} lines, {sum(sizes[path] == 1 for path in small)} of them a package's docstring"
    )
    print(f"{sum(counts[name] == 1 for name in counts)} modules with one importer")
    print(f"{sum(each > COMPLEX for each in complexities)} functions with a complexity above {COMPLEX}")
    print(f"{1000 * comprehensions / total:.1f} comprehensions in 1,000 lines")
    print(
        f"{1000 * sum(isinstance(node, ast.IfExp) for node in nodes) / total:.1f} conditional expressions in 1,000 lines"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else PACKAGE)
